package script_test

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redquorum/redquorum/script"
)

func TestEverySourceIsThere(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	if err != nil || len(files) != len(script.All()) {
		t.Fatalf("%d files (%v) and %d scripts", len(files), err, len(script.All()))
	}
	sent := map[string]bool{}
	for _, req := range append(aboutNodes, everyRequest...) {
		sent[req.Script().Name] = true
	}
	for _, s := range script.All() {
		text, err := os.ReadFile(s.Name + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha1.Sum(text)
		if s.Source != string(text) || s.SHA != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not its file, or not called after it", s.Name)
		}
		if !sent[s.Name] {
			t.Errorf("%s: no test sends it", s.Name)
		}
	}
}

func TestRedisNamesTheScriptsAsWeDo(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		for _, s := range script.All() {
			if sha := must(t, c.ScriptLoad(t.Context(), s.Source)); sha != s.SHA {
				t.Errorf("%s is %s, and %s to the server", s.Name, s.SHA, sha)
			}
		}
	})
}

var (
	comment = regexp.MustCompile(`--.*`)
	call    = regexp.MustCompile(`redis\.p?call\(\s*'([A-Za-z]+)'`)
	anyCall = regexp.MustCompile(`redis\.p?call`)
)

// commands are those that a source calls.
func commands(t *testing.T, s *script.Script) map[string]bool {
	t.Helper()
	code := comment.ReplaceAllString(s.Source, "")
	found := call.FindAllStringSubmatch(code, -1)
	if n := len(anyCall.FindAllString(code, -1)); n != len(found) {
		t.Fatalf("%s: %d calls, and only %d of them name their command on the spot", s.Name, n, len(found))
	}
	set := map[string]bool{}
	for _, m := range found {
		set[strings.ToUpper(m[1])] = true
	}
	return set
}

// A permission that is missing shows at start-up, or at the first lock.
func TestProbeCoversEveryCommand(t *testing.T) {
	probed := commands(t, aProbe.Script())
	for _, req := range everyRequest { // the node itself is checked on every connection, also on a probe's
		s := req.Script()
		for command := range commands(t, s) {
			if !probed[command] {
				t.Errorf("%s calls %s, which the probe does not try", s.Name, command)
			}
		}
	}
}

var (
	concatenation = regexp.MustCompile(`(\S+)\s*\.\.\s*([^\s,)]+)`)
	text          = regexp.MustCompile(`^\(?('[^']*'|revoked|who|(?:held|mine|count|text|fields|set|noted)\.err|'|ARGV\[\w\])$`)
)

// Lua writes a number as 1.7953e+15. Only string.format('%.0f') turns numbers into strings; '..' may join what is a
// string already.
func TestNoNumberBecomesAStringByItself(t *testing.T) {
	for _, s := range script.All() {
		code := comment.ReplaceAllString(s.Source, "")
		if strings.Contains(code, "tostring") {
			t.Errorf("%s calls tostring", s.Name)
		}
		if formats := strings.Count(code, "string.format("); formats != strings.Count(code, "string.format('%.0f', ") {
			t.Errorf("%s formats otherwise than with %%.0f", s.Name)
		}
		// Without the strings' content, so that a '..' in there is none and every operand is one word.
		code = regexp.MustCompile(`'[^']*'`).ReplaceAllString(code, "''")
		for line := range strings.Lines(code) {
			for rest := line; ; {
				at := concatenation.FindStringSubmatchIndex(rest)
				if at == nil {
					break
				}
				for _, operand := range []string{rest[at[2]:at[3]], rest[at[4]:at[5]]} {
					operand = operand[strings.LastIndex(operand, "(")+1:]
					if !text.MatchString(operand) {
						t.Errorf("%s: %q is joined to a string in %q: is it one?", s.Name, operand, strings.TrimSpace(line))
					}
				}
				rest = rest[at[4]:] // the right operand may be the next left one
			}
		}
		// SET, PEXPIRE and the like write a number that is handed to them as Lua would.
		for _, m := range regexp.MustCompile(`redis\.p?call\('(?:SET|PEXPIRE|HSET)'.*`).FindAllString(comment.ReplaceAllString(s.Source, ""), -1) {
			for _, number := range []string{"now", "fence)", "fence,", "token)", "token,", "lives)", "lives,", "till", "ttl)", "ttl,", "tonumber"} {
				if strings.Contains(regexp.MustCompile(`string\.format\('%\.0f', \w+\)`).ReplaceAllString(m, ""), number) {
					t.Errorf("%s hands a bare number to Redis in %q", s.Name, m)
				}
			}
		}
	}
}

// Lua's globals would outlive the script; Redis refuses them, at run time.
func TestEveryVariableIsLocal(t *testing.T) {
	assignment := regexp.MustCompile(`(?m)^\s*([a-z_]+(?:, [a-z_]+)*) = `)
	for _, s := range script.All() {
		code := comment.ReplaceAllString(s.Source, "")
		for _, m := range assignment.FindAllStringSubmatch(code, -1) {
			for v := range strings.SplitSeq(m[1], ", ") {
				if !regexp.MustCompile(`local [a-z_, ]*\b` + v + `\b`).MatchString(code) {
					t.Errorf("%s: %s is not local", s.Name, v)
				}
			}
		}
	}
}
