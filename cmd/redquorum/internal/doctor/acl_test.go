package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/redquorum/redquorum/quorum"
)

// With the rules of quorum.ACL, and no others, nothing is missing; without any one of them it is said which, also while the
// servers still know the scripts.
func TestRealEveryRuleThatIsMissingIsFound(t *testing.T) {
	const prefix, password = "shop:", "s3cret-Of-All"
	rules, err := quorum.ACL(prefix)
	if err != nil {
		t.Fatal(err)
	}
	w := admit(t, "--user", "app", "on", ">"+password)
	for i, s := range w.servers {
		w.urls[i] = "redis://app:" + password + "@" + s.Addr()
	}
	examine := func(t *testing.T, rules []string) Report {
		t.Helper()
		words := []any{"ACL", "SETUSER", "app", "reset", "on", ">" + password}
		for _, rule := range rules {
			words = append(words, rule)
		}
		for _, s := range w.servers {
			w.must(s.Client().Do(t.Context(), words...).Err())
		}
		r, err := Examine(t.Context(), Config{URLs: w.urls, Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	content := func(t *testing.T) {
		t.Helper()
		r := examine(t, rules)
		if advice := r.advice(); len(advice) != 1 || advice[0].Severity != Note || !strings.HasPrefix(advice[0].Found, "CONFIG GET: NOPERM") || r.Voting != 3 {
			t.Errorf("with all of them: %+v", advice)
		}
	}
	content(t)

	named := map[string]string{
		"~shop:*":                         `"shop:redquorum_ping:`,
		"~redquorum_fence:{shop:*":        `"redquorum_fence:{shop:redquorum_ping:`,
		"~redquorum_revoked:{shop:*":      `"redquorum_revoked:{shop:redquorum_ping:`,
		"~redquorum_node":                 `["redquorum_node"]`,
		"&redisson_lock__channel:{shop:*": `redisson_lock__channel:{shop:redquorum_ping:`,
		"&redisson_lock__channel:shop:*":  `redisson_lock__channel:shop:redquorum_ping:`,
	}
	works := map[string]Severity{ // until the bad day
		"+eval": Problem, "+pubsub|numsub": Warning, "+subscribe": Warning, "+unsubscribe": Warning, "+ping": Warning,
		"&redisson_lock__channel:shop:*": Warning,
	}
	for _, missing := range rules {
		t.Run(missing, func(t *testing.T) {
			r := examine(t, slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return rule == missing }))
			want := named[missing]
			command, isCommand := strings.CutPrefix(missing, "+")
			severity, votes := Problem, 0
			if s, ok := works[missing]; ok {
				severity, votes = s, 3
			}
			if r.Worst() != severity || r.Voting != votes {
				t.Errorf("%v, and %d vote; want %v, and %d", r.Worst(), r.Voting, severity, votes)
			}
			for _, f := range r.advice() {
				found := strings.ToLower(f.Found)
				names := want != "" && strings.Contains(found, want) ||
					isCommand && (strings.Contains(found, "'"+command+"'") || strings.Contains(found, ": "+command+" ") || strings.HasSuffix(found, ": "+command))
				if f.Severity == severity && names && f.Means != "" && strings.Contains(f.Fix, "--acl 'shop:'") && len(f.Nodes) == 3 {
					return
				}
			}
			t.Errorf("it is not named: %+v", r.advice())
		})
	}
	content(t)
}
