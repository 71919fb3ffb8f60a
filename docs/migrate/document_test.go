package migrate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every block of Go in the documents is code of this package, to the letter, apart from its indentation. So what they
// show compiles, and the tests run it.
func TestTheDocumentsShowTheCodeThatIsTested(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join("..", "migrate-*.md"))
	if err != nil || len(documents) != 2 {
		t.Fatalf("documents: %q, %v", documents, err)
	}
	sources, err := filepath.Glob("*.go")
	must(t, err)
	var code strings.Builder
	for _, path := range sources {
		text, err := os.ReadFile(path)
		must(t, err)
		code.Write(text)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)\n```$")
	start := regexp.MustCompile(`(?m)^(.)`)
	for _, path := range documents {
		text, err := os.ReadFile(path)
		must(t, err)
		shown := blocks.FindAllStringSubmatch(string(text), -1)
		if len(shown) == 0 {
			t.Errorf("%s shows no Go", path)
		}
		for _, block := range shown {
			found := false
			for depth := range 4 {
				indented := start.ReplaceAllString(block[1], strings.Repeat("\t", depth)+"$1")
				found = found || strings.Contains(code.String(), "\n"+indented+"\n")
			}
			if !found {
				t.Errorf("%s shows what is no code here:\n%s", path, block[1])
			}
		}
	}
}
