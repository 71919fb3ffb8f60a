package fencing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// blocks are the code blocks of a document in one language.
func blocks(t *testing.T, path, language string) (found []string) {
	t.Helper()
	for _, b := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)\n```$").FindAllStringSubmatch(read(t, path), -1) {
		found = append(found, b[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s shows no %s", path, language)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	ok(t, err)
	return string(text)
}

// statements are the constants of a source file. That each of them is run is for the linter to see: one that nothing
// uses is a finding.
func statements(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	ok(t, err)
	found := make(map[string]string)
	for _, d := range file.Decls {
		consts, _ := d.(*ast.GenDecl)
		if consts == nil || consts.Tok != token.CONST {
			continue
		}
		for _, s := range consts.Specs {
			spec := s.(*ast.ValueSpec)
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			ok(t, err)
			found[text] = spec.Names[0].Name
		}
	}
	return found
}

var comment = regexp.MustCompile(`\s*--.*`)

// Every statement that the document shows is one that the tests run, and the other way round.
func TestTheDocumentShowsTheStatementsThatAreTested(t *testing.T) {
	tested := statements(t, "statements.go")
	for text, name := range statements(t, "wrong_test.go") {
		tested[text] = name
	}
	shown := map[string]bool{"BEGIN": true, "COMMIT": true}
	for _, block := range blocks(t, "README.md", "sql") {
		for statement := range strings.SplitSeq(comment.ReplaceAllString(block, ""), ";") {
			statement = strings.TrimSpace(statement)
			if statement != "" && tested[statement] == "" && !shown[statement] {
				t.Errorf("README.md shows what no test runs:\n%s", statement)
			}
			shown[statement] = true
		}
	}
	for text, name := range tested {
		if !shown[text] {
			t.Errorf("README.md does not show %s:\n%s", name, text)
		}
	}
}

func TestTheDocumentShowsTheCodeThatIsTested(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	ok(t, err)
	var code strings.Builder
	for _, path := range sources {
		code.WriteString(read(t, path))
	}
	for _, block := range blocks(t, "README.md", "go") {
		if !strings.Contains(code.String(), "\n"+block+"\n") {
			t.Errorf("README.md shows what is no code here:\n%s", block)
		}
	}
}

// The one statement in the README of the library is the first one here.
func TestTheLibrarysReadmeShowsATestedStatement(t *testing.T) {
	for _, block := range blocks(t, filepath.Join("..", "..", "README.md"), "sql") {
		if block != updateRow {
			t.Errorf("it shows what no test runs:\n%s", block)
		}
	}
}
