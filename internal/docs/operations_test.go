package docs

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The runbook has a row for whatever the library may say. These tests read the source, so that the page cannot fall behind.

const runbook = "docs/operations.md"

// Every exported error of a package that users import has a row, and no row is about one that is gone.
func TestRunbookExplainsEveryError(t *testing.T) {
	var exported []string
	for _, r := range rooms(t) {
		for _, spec := range r.declared(token.VAR) {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Err") {
					exported = append(exported, r.name+"."+name.Name)
				}
			}
		}
	}
	compare(t, "Errors", exported)
}

// Errors without a name show up in votes, and so in logs.
func TestRunbookExplainsWhatAVoteMaySay(t *testing.T) {
	var texts []string
	for _, r := range rooms(t) {
		for _, spec := range r.declared(token.VAR) {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if !strings.HasPrefix(name.Name, "err") || i >= len(spec.Values) {
					continue
				}
				call, ok := spec.Values[i].(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					continue
				}
				if text, ok := constant(call.Args[0]); ok {
					texts = append(texts, text)
				}
			}
		}
	}
	compare(t, "Errors without a name", texts)
}

func TestRunbookExplainsEveryLogMessage(t *testing.T) {
	var texts []string
	for _, r := range rooms(t) {
		texts = append(texts, r.logged(t)...)
	}
	compare(t, "What the log says", texts)
}

func TestRunbookExplainsEveryLoss(t *testing.T) {
	quorum, err := enter(filepath.Join(root, "quorum"))
	if err != nil {
		t.Fatal(err)
	}
	var whys []string
	for _, file := range quorum.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "why" {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
					if text, ok := constant(r.Results[0]); ok {
						whys = append(whys, text)
					}
				}
				return true
			})
		}
	}
	compare(t, "Why a lease was lost", whys)
}

func TestRunbookNamesEveryExitStatus(t *testing.T) {
	command, err := enter(filepath.Join(root, "cmd", "redquorum"))
	if err != nil {
		t.Fatal(err)
	}
	var statuses []string
	for _, file := range command.files {
		if filepath.Base(positions.File(file.Pos()).Name()) != "status.go" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for _, value := range spec.Values {
					if number, ok := value.(*ast.BasicLit); ok && number.Kind == token.INT {
						statuses = append(statuses, number.Value)
					}
				}
			}
			return true
		})
	}
	if len(statuses) == 0 {
		t.Fatal("cmd/redquorum/status.go has no exit statuses")
	}
	rows := firstCells(t, "Exit statuses")
	for _, status := range statuses {
		if !slices.Contains(rows, status) {
			t.Errorf("%s, Exit statuses: no row for %s", runbook, status)
		}
	}
}

// compare wants a section of the runbook to have one row for each text, in the first column.
func compare(t *testing.T, section string, texts []string) {
	t.Helper()
	if len(texts) == 0 {
		t.Fatalf("nothing was found in the source for %q", section)
	}
	rows := firstCells(t, section)
	for _, text := range texts {
		if !slices.Contains(rows, text) {
			t.Errorf("%s, %s: no row for\n%s", runbook, section, text)
		}
	}
	for _, row := range rows {
		if !slices.Contains(texts, row) {
			t.Errorf("%s, %s: the source has no more of\n%s", runbook, section, row)
		}
	}
}

var (
	row  = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|")
	cell = regexp.MustCompile("`([^`]+)`")
)

// firstCells are what is quoted in the first columns of the tables in a section of the runbook.
func firstCells(t *testing.T, section string) (cells []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, runbook))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "# "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", runbook, section)
	}
	rest, _, _ = strings.Cut(rest, "\n#") // of any level
	for _, m := range row.FindAllStringSubmatch(rest, -1) {
		for _, m := range cell.FindAllStringSubmatch(m[1], -1) {
			cells = append(cells, m[1])
		}
	}
	return cells
}
