package docs

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// Every exported type shows how it is used: an Example of its own, or of one of its methods.
func TestEveryExportedTypeHasAnExample(t *testing.T) {
	for _, r := range rooms(t) {
		examples := map[string]bool{}
		for _, file := range r.tests {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					if of, ok := strings.CutPrefix(f.Name.Name, "Example"); ok {
						of, _, _ = strings.Cut(of, "_")
						examples[of] = true
					}
				}
			}
		}
		for _, spec := range r.declared(token.TYPE) {
			if name := spec.(*ast.TypeSpec).Name.Name; ast.IsExported(name) && !examples[name] {
				t.Errorf("%s: no Example of %s", r.path, name)
			}
		}
	}
}

// An Example without an output compiles and is never run.
func TestEveryExampleIsRun(t *testing.T) {
	for _, r := range rooms(t) {
		for _, file := range r.tests {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
					continue
				}
				checked := false
				for _, c := range file.Comments {
					if f.Body.Pos() < c.Pos() && c.End() < f.Body.End() {
						text := strings.ToLower(c.Text())
						checked = checked || strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")
					}
				}
				if !checked {
					t.Errorf("%s: %s has no output", r.path, f.Name.Name)
				}
			}
		}
	}
}

// Every package says what it is for, and what it guarantees or not, where go doc begins.
func TestEveryPackageHasADocument(t *testing.T) {
	for _, r := range rooms(t) {
		document := ""
		for _, file := range r.files {
			if strings.HasSuffix(positions.File(file.Pos()).Name(), "doc.go") && file.Doc != nil {
				document = file.Doc.Text()
			}
		}
		if !strings.HasPrefix(document, "Package "+r.name+" ") {
			t.Errorf("%s/doc.go does not begin with what package %s is", r.path, r.name)
		}
	}
}
