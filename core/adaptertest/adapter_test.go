package adaptertest_test

import (
	"go/ast"
	"go/doc"
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
	"mcplimit":     {"Caller", "HTTP", "Local", "Options", "User"},
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
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(set, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	values, functions := slices.Concat(pkg.Consts, pkg.Vars), pkg.Funcs
	for _, of := range pkg.Types {
		names = append(names, of.Name)
		values, functions = slices.Concat(values, of.Consts, of.Vars), append(functions, of.Funcs...)
	}
	for _, value := range values {
		names = append(names, value.Names...)
	}
	for _, function := range functions {
		names = append(names, function.Name)
	}
	slices.Sort(names)
	return names
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
