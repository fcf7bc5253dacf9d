package panics_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

func TestGuard(t *testing.T) {
	var got error
	failed := func(err error) { got = err }
	panics.Guard(func() {}, failed)()
	if got != nil {
		t.Errorf("%v after no panic", got)
	}
	panics.Guard(func() { panic("of a test") }, failed)()
	if got == nil || !panics.Is(got) || got.Error() != "panic: of a test" || !strings.Contains(panics.StackOf(got), "TestGuard") {
		t.Errorf("%v, with the stack %q", got, panics.StackOf(got))
	}
	plain := errors.New("plain")
	if err := panics.Catch(func() error { return plain }); err != plain || panics.Is(err) || panics.StackOf(err) != "" {
		t.Errorf("%v, want the function's own error", err)
	}
}

// Every function of the library that runs in a goroutine of its own is made by Guard, or catches
// panics by Catch: that of a go statement, of a timer, of a WaitGroup, and of a context's end.
func TestEveryGoroutineIsGuarded(t *testing.T) {
	found := 0
	folders, err := filepath.Glob("../../../*limit")
	if err != nil || len(folders) < 7 {
		t.Fatalf("the folders are %v: %v", folders, err)
	}
	for _, folder := range append(folders, "../../../core") {
		walkCode(t, folder, func(at token.Position, node ast.Node) {
			starts, isGuarded := startsGoroutine(node)
			if !starts {
				return
			}
			found++
			if !isGuarded {
				t.Errorf("%s: this function runs in a goroutine of its own, and is not made by panics.Guard", at)
			}
		})
	}
	if found < 20 {
		t.Errorf("%d goroutines found, want all", found)
	}
}

// walkCode visits all nodes of the library's code in a folder, except helpers for tests.
func walkCode(t *testing.T, folder string, visit func(at token.Position, node ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"limittest", "adaptertest", "localtest", "logtest", "browsertest", "testdata"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if node != nil {
				visit(files.Position(node.Pos()), node)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// startsGoroutine reports whether a node makes a function run in a goroutine of its own, and whether
// that function is guarded.
func startsGoroutine(node ast.Node) (starts, isGuarded bool) {
	switch node := node.(type) {
	case *ast.GoStmt:
		return true, isGuard(node.Call.Fun)
	case *ast.CallExpr:
		selector, ok := node.Fun.(*ast.SelectorExpr)
		if ok && slices.Contains([]string{"Go", "AfterFunc", "DoChan", "TryGo"}, selector.Sel.Name) {
			return true, isGuard(node.Args[len(node.Args)-1])
		}
	}
	return false, false
}

// isGuard reports whether an expression is a call of panics.Guard or panics.Result.
func isGuard(function ast.Expr) bool {
	call, ok := function.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := selector.X.(*ast.Ident)
	return ok && name.Name == "panics" && slices.Contains([]string{"Guard", "Result"}, selector.Sel.Name)
}
