package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block is what stands between two fences of a document.
type block struct {
	document string // from the root
	line     int    // of its first line
	language string
	text     string
	notRun   string // the reason that the comment above it gives
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.document, b.line) }

// documents are README.md and all that is below docs.
func documents(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		path, err = filepath.Rel(root, path)
		found = append(found, filepath.ToSlash(path))
		return err
	})
	if err != nil || len(found) < 2 {
		t.Fatalf("%v, %v", found, err)
	}
	return found
}

var (
	fence    = regexp.MustCompile("^( *)```(\\w*)$")
	exempted = regexp.MustCompile(`^ *<!-- not run: (\S.*) -->$`)
)

// blocks are the fenced blocks of a document.
func blocks(t *testing.T, document string) (found []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	indent, reason := "", ""
	for i, line := range strings.Split(string(text), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			indent = m[1]
			open = &block{document: document, line: i + 2, language: m[2], notRun: reason}
		case open != nil && m != nil && m[2] == "":
			found = append(found, *open)
			open, reason = nil, ""
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case exempted.MatchString(line):
			reason = exempted.FindStringSubmatch(line)[1]
		case line != "":
			if strings.Contains(line, "```") || strings.Contains(line, "<!-- not run") {
				t.Errorf("%s:%d is neither a fence nor a reason, and looks like one: %s", document, i+1, line)
			}
			reason = ""
		}
	}
	if open != nil {
		t.Errorf("%v: the fence is not closed", open)
	}
	return found
}

// A step is one command of a console block, and what it prints.
type step struct{ command, prints string }

// steps are the commands of a console block: lines behind "$ ", continued behind "> ".
func (b block) steps(t *testing.T) (all []step) {
	t.Helper()
	for line := range strings.Lines(b.text) {
		last := len(all) - 1
		switch command, starts := strings.CutPrefix(line, "$ "); {
		case starts:
			all = append(all, step{command: command})
		case last < 0:
			t.Fatalf("%v: want a line that begins with \"$ \", got %q", b, line)
		case strings.HasPrefix(line, "> ") && all[last].prints == "":
			all[last].command += line[2:]
		default:
			all[last].prints += line
		}
	}
	return all
}

var spaces = regexp.MustCompile(`[ \t]+`)

// agrees tells whether a command printed what the document shows. There, … is anything within a line, or any lines if it is
// all of one. Columns are as wide as what is in them, so runs of spaces count as one.
func agrees(shown, printed string) bool {
	pattern := "^"
	for line := range strings.Lines(tidy(shown)) {
		if line == "…\n" {
			pattern += "(?:.*\n)*?"
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
	}
	return regexp.MustCompile(pattern + "$").MatchString(tidy(printed))
}

// tidy makes runs of spaces one, and ends a text with a line.
func tidy(text string) string {
	text = strings.ReplaceAll(spaces.ReplaceAllString(text, " "), " \n", "\n")
	if text = strings.Trim(text, "\n"); text != "" {
		text += "\n"
	}
	return text
}

func TestWhatIsShownIsWhatIsPrinted(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"", "", true},
		{"", "something\n", false},
		{"free\n", "free\n", true},
		{"free\n", "", false},
		{"free\n", "free\nheld\n", false},
		{"A  B\n", "A B  \n", true},
		{"held by …, for …\n", "held by me:1, for 3s\n", true},
		{"held by …, for …\n", "held by me:1,\nfor 3s\n", false},
		{"a.b\n", "axb\n", false},
		{"…\nlast\n", "first\nsecond\nlast\n", true},
		{"…\nlast\n", "last\n", true},
		{"…\nlast\n", "last\nfirst\n", false},
	} {
		if got := agrees(c.shown, c.printed); got != c.want {
			t.Errorf("shown %q, printed %q: %v", c.shown, c.printed, got)
		}
	}
}
