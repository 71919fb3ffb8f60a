// Package docs keeps the documents true: whatever test or file they name has to be there.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func TestDocumentsNameTestsAndFilesThatExist(t *testing.T) {
	tests := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil || len(tests) == 0 {
		t.Fatalf("%d tests, %v", len(tests), err)
	}
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(documents) == 0 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	quoted := regexp.MustCompile("`([^`\n]+)`")
	file := regexp.MustCompile(`^[a-z_]+(/[a-z_]+)*\.(go|lua|md)$`)
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, m := range quoted.FindAllSubmatch(text, -1) {
			word := string(m[1])
			switch {
			case strings.HasPrefix(word, "Test"):
				named++
				if !tests[word] {
					t.Errorf("%s names %s, and there is no such test", document, word)
				}
			case file.MatchString(word):
				named++
				if _, err := os.Stat(filepath.Join(root, word)); err != nil {
					t.Errorf("%s: %v", document, err)
				}
			}
		}
		if named == 0 {
			t.Errorf("%s names neither a test nor a file", document)
		}
	}
}
