package adaptertest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/adaptertest"
)

func TestToy(t *testing.T) { adaptertest.Run(t, adaptertest.Adapter{Serve: serve}) }

// TestAdaptersAreAlike checks that all HTTP adapters export the same names, so that somebody who
// knows one of them knows them all.
func TestAdaptersAreAlike(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "*limit"))
	folders = slices.DeleteFunc(folders, func(folder string) bool { // a module of its own is for metrics
		_, err := os.Stat(filepath.Join(folder, "go.mod"))
		return err == nil
	})
	if err != nil || len(folders) < 5 {
		t.Fatalf("the adapters are %v: %v", folders, err)
	}
	for _, folder := range folders {
		want := []string{"Allow", "New", "OwnLimits", "With"}
		if filepath.Base(folder) == "grpclimit" {
			want = []string{"Allow", "OwnLimits", "StreamServerInterceptor", "UnaryServerInterceptor", "With"}
		}
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
