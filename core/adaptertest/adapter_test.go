package adaptertest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestToy(t *testing.T) { adaptertest.Run(t, adaptertest.Adapter{Serve: serve}) }

// furtherNames are what an adapter exports because of its framework.
var furtherNames = map[string][]string{
	"echo5limit":   {"NewStore", "Store"}, // of the framework's own rate limiter
	"grpclimit":    {"StreamClientInterceptor", "StreamServerInterceptor", "UnaryClientInterceptor", "UnaryServerInterceptor"},
	"mcplimit":     {"Caller", "HTTP", "Options", "User"},
	"nethttplimit": {"ForwardAuth"},
}

// TestAdaptersAreAlike checks that all adapters export the same names, so that somebody who knows one
// of them knows them all.
func TestAdaptersAreAlike(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "*limit"))
	folders = slices.DeleteFunc(folders, func(folder string) bool { // these are for metrics
		return slices.Contains([]string{"otellimit", "promlimit"}, filepath.Base(folder))
	})
	if err != nil || len(folders) < 10 {
		t.Fatalf("the adapters are %v: %v", folders, err)
	}
	for _, folder := range folders {
		want := append([]string{"Allow", "New", "OwnLimits", "With"}, furtherNames[filepath.Base(folder)]...)
		if filepath.Base(folder) == "grpclimit" { // its interceptors in place of New
			want = slices.DeleteFunc(want, func(name string) bool { return name == "New" })
		}
		slices.Sort(want)
		if got := exports(t, folder); !slices.Equal(got, want) {
			t.Errorf("%s exports %v, want %v", folder, got, want)
		}
	}
}

// exports returns the exported top-level names of the package in dir, sorted. Tests are left out.
func exports(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			names = append(names, declared(decl)...)
		}
	}
	slices.Sort(names)
	return names
}

func declared(decl ast.Decl) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			add(decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					add(id)
				}
			}
		}
	}
	return names
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
