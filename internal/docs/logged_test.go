package docs

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// slogs are the methods of a logger, and which of their arguments is the message.
var slogs = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0,
	"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2,
}

// logged are all messages that the package may log. Each has to be a text that stands in the source: what is put together
// when it is logged nobody can look up.
func (r *room) logged(t *testing.T) (texts []string) {
	t.Helper()
	passed := map[string]int{} // functions that log what they are given, and which of their arguments that is
	for known := -1; known < len(passed); {
		known, texts = len(passed), nil
		for _, file := range r.files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					texts = append(texts, r.loggedIn(t, f, passed)...)
				}
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// loggedIn are the messages of one function. One that comes from outside makes it a function that is passed its message.
func (r *room) loggedIn(t *testing.T, f *ast.FuncDecl, passed map[string]int) (texts []string) {
	t.Helper()
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		at, logs := passed[called(call)]
		if isLogger(call) {
			at, logs = slogs[called(call)]
		}
		if !logs || at >= len(call.Args) {
			return true
		}
		message := call.Args[at]
		name, variable := message.(*ast.Ident)
		switch text, ok := constant(message); {
		case ok:
			texts = append(texts, text)
		case variable && r.named(name.Name) != "":
			texts = append(texts, r.named(name.Name))
		case variable && parameter(f, name.Name) >= 0:
			passed[f.Name.Name] = parameter(f, name.Name)
		case variable && len(assigned(f, name.Name)) > 0:
			texts = append(texts, assigned(f, name.Name)...)
		default:
			t.Errorf("%v: this message does not stand in the source", positions.Position(message.Pos()))
		}
		return true
	})
	return texts
}

// called is the name of a called function, without what it belongs to.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// isLogger tells whether a call is one of something that is named as a logger is: c.log, cfg.Logger, slog.
func isLogger(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name := ""
	switch of := f.X.(type) {
	case *ast.Ident:
		name = of.Name
	case *ast.SelectorExpr:
		name = of.Sel.Name
	case *ast.CallExpr:
		name = called(of) // logger(), slog.Default(), c.log.With(…)
	}
	return slices.Contains([]string{"log", "logger", "Logger", "slog", "Default", "With", "WithGroup"}, name)
}

// parameter is which parameter of a function has a name; -1 if none has.
func parameter(f *ast.FuncDecl, name string) int {
	i := 0
	for _, field := range f.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return i
			}
			i++
		}
	}
	return -1
}

// assigned are the texts that a variable of a function may have; none if one of them is not known.
func assigned(f *ast.FuncDecl, name string) (texts []string) {
	known := true
	ast.Inspect(f.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range a.Lhs {
			if left, ok := left.(*ast.Ident); ok && left.Name == name {
				text, ok := "", false
				if len(a.Lhs) == len(a.Rhs) {
					text, ok = constant(a.Rhs[i])
				}
				known, texts = known && ok, append(texts, text)
			}
		}
		return true
	})
	if !known {
		return nil
	}
	return texts
}

// named is the text of a constant of the package.
func (r *room) named(name string) string {
	for _, spec := range r.declared(token.CONST) {
		spec := spec.(*ast.ValueSpec)
		for i, n := range spec.Names {
			if n.Name == name && i < len(spec.Values) {
				text, _ := constant(spec.Values[i])
				return text
			}
		}
	}
	return ""
}
