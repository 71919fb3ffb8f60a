package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlined = regexp.MustCompile("`[^`\n]*`")
)

// Links within the repository lead somewhere, and to a heading that is there.
func TestLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for _, document := range documents(t) {
		text := inlined.ReplaceAllString(prose(t, document), "``")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, anchored := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			checked++
			file := document
			if target != "" {
				file = path.Join(path.Dir(document), target)
			}
			_, err := os.Stat(filepath.Join(root, file))
			switch {
			case err != nil:
				t.Errorf("%s links to %s: %v", document, m[1], err)
			case anchored && !slices.Contains(anchors(t, file), anchor):
				t.Errorf("%s links to %s, where no heading is called so", document, m[1])
			}
		}
	}
	if checked == 0 {
		t.Error("no document links to another")
	}
}

// prose is a document without its blocks.
func prose(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// anchors are what the headings of a document are called in links, as GitHub calls them.
func anchors(t *testing.T, document string) (all []string) {
	t.Helper()
	for _, m := range heading.FindAllStringSubmatch(prose(t, document), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return all
}
