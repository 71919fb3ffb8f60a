package docs

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// Every exported type is shown in use: by an Example of its own or of one of its methods, or in a file of examples, which go
// doc shows as a whole where there is but one.
func TestEveryExportedTypeHasAnExample(t *testing.T) {
	for _, r := range rooms(t) {
		shown := map[string]bool{}
		for _, file := range r.tests {
			of := examples(file)
			for _, name := range of {
				shown[name] = true
			}
			if len(of) == 0 {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if from, ok := s.X.(*ast.Ident); ok && from.Name == r.name {
						shown[s.Sel.Name] = true
					}
				}
				return true
			})
		}
		for _, spec := range r.declared(token.TYPE) {
			if name := spec.(*ast.TypeSpec).Name.Name; ast.IsExported(name) && !shown[name] {
				t.Errorf("%s: no example shows %s", r.path, name)
			}
		}
	}
}

// examples are what the Examples of a file are of.
func examples(file *ast.File) (of []string) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			if name, ok := strings.CutPrefix(f.Name.Name, "Example"); ok {
				name, _, _ = strings.Cut(name, "_")
				of = append(of, name)
			}
		}
	}
	return of
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
