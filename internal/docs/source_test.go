package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A room is a package that users import, as its source says.
type room struct {
	path         string // from the root of the module
	name         string
	files, tests []*ast.File
}

var positions = token.NewFileSet()

// rooms are the packages of the root module that users import: not its commands, its test machinery, or what is a module
// of its own.
func rooms(t *testing.T) (found []*room) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			switch name := d.Name(); {
			case nested == nil, name == "internal", name == "cmd", name == "testdata", strings.HasPrefix(name, "."):
				return filepath.SkipDir
			}
		}
		r, err := enter(path)
		if err == nil && len(r.files) > 0 {
			found = append(found, r)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d packages, %v", len(found), err)
	}
	return found
}

// enter parses the package in a folder.
func enter(folder string) (*room, error) {
	path, err := filepath.Rel(root, folder)
	if err != nil {
		return nil, err
	}
	r := &room{path: filepath.ToSlash(path)}
	sources, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		file, err := parser.ParseFile(positions, source, nil, parser.ParseComments)
		switch {
		case err != nil:
			return nil, err
		case strings.HasSuffix(source, "_test.go"):
			r.tests = append(r.tests, file)
		default:
			r.name, r.files = file.Name.Name, append(r.files, file)
		}
	}
	return r, nil
}

// constant is the text that an expression is known to have: a literal, or several in a sum.
func constant(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return constant(e.X)
	case *ast.BinaryExpr:
		left, ok1 := constant(e.X)
		right, ok2 := constant(e.Y)
		return left + right, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}

// declared are the specifications of one kind at the top level of the package.
func (r *room) declared(kind token.Token) (specs []ast.Spec) {
	for _, file := range r.files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == kind {
				specs = append(specs, d.Specs...)
			}
		}
	}
	return specs
}
