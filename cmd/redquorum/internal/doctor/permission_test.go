package doctor

import (
	"strings"
	"testing"

	"github.com/redquorum/redquorum/internal/redisserver"
)

// What a user may not do is told, whatever it is: what locks need is a problem, and what only an examination needs a note.
func TestRealServersThatForbid(t *testing.T) {
	t.Parallel()
	redisserver.Require(t)
	const password = "s3cret-Of-All"
	for title, c := range map[string]struct {
		rules []string
		want  map[string]Severity
		words []string
		votes int
	}{
		"nothing":                 {nil, nil, nil, 3},
		"to tell settings":        {[]string{"-config"}, map[string]Severity{"persistence": Note}, []string{"CONFIG GET: NOPERM"}, 3},
		"to tell of itself":       {[]string{"-info"}, map[string]Severity{"server": Note, "commands": Problem}, []string{"INFO: NOPERM"}, 0},
		"to be looked at":         {[]string{"-info", "-config"}, map[string]Severity{"server": Note, "persistence": Note, "commands": Problem}, nil, 0},
		"a command":               {[]string{"-pexpire"}, map[string]Severity{"commands": Problem}, []string{"PEXPIRE", "ACL SETUSER"}, 0},
		"scripts":                 {[]string{"-@scripting"}, map[string]Severity{"commands": Problem}, []string{"NOPERM", "eval"}, 0},
		"other people's keys":     {[]string{"resetkeys", "~mine:*"}, map[string]Severity{"commands": Problem}, []string{"NOPERM", "keys", "(--prefix)", "--acl ''"}, 0},
		"other people's channels": {[]string{"resetchannels", "&mine:*"}, map[string]Severity{"commands": Problem}, []string{"channel", "(--prefix)"}, 0},
		"the time":                {[]string{"-time"}, map[string]Severity{"reachability": Problem}, []string{"NOPERM", "time"}, 0},
		"to listen":               {[]string{"-subscribe"}, map[string]Severity{"messages": Warning}, []string{"'subscribe' command", "ACL SETUSER"}, 3},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := admit(t, append([]string{"--user", "app", "on", ">" + password, "~*", "&*", "+@all"}, c.rules...)...)
			for i, s := range w.servers {
				w.urls[i] = "redis://app:" + password + "@" + s.Addr()
			}
			r := w.examine()
			got := map[string]Severity{}
			for _, f := range r.advice() {
				got[f.Check] = f.Severity
				if len(f.Nodes) != 3 {
					t.Errorf("only of %q: %+v", f.Nodes, f)
				}
			}
			if len(got) != len(c.want) || r.Voting != c.votes {
				t.Errorf("%d vote, want %d; found %v, want %v", r.Voting, c.votes, got, c.want)
			}
			text := written(t, r)
			for check, severity := range c.want {
				if got[check] != severity {
					t.Errorf("%s: %v, want %v", check, got[check], severity)
				}
			}
			for _, word := range c.words {
				if !strings.Contains(text, word) {
					t.Errorf("no %q in\n%s", word, text)
				}
			}
			if strings.Contains(text, password) {
				t.Errorf("the password is told:\n%s", text)
			}
		})
	}
}
