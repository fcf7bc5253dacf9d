package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// Nobody can survey a long page of documentation. So a new name replaces an old one, or is a
// method.
func TestSizeOfTheAPI(t *testing.T) {
	names := exportedNames(t, ".")
	if len(names) > 125 {
		t.Errorf("core exports %d names, want at most 125: %v", len(names), names)
	}
	if len(names) < 50 || !slices.Contains(names, "Limiter") || !slices.Contains(names, "FailOpen") || !slices.Contains(names, "TokenBucket") {
		t.Errorf("the names are %v: the test shows nothing", names)
	}
	if n := reflect.TypeFor[core.Rule]().NumField(); n > 25 {
		t.Errorf("Rule has %d fields, want at most 25", n)
	}
}

// exportedNames returns the exported constants, variables, functions and types of the package in a
// directory.
func exportedNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			parsed, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, exportedBy(parsed)...)
		}
	}
	slices.Sort(names)
	return names
}

func exportedBy(file *ast.File) (names []string) {
	add := func(name *ast.Ident) {
		if name.IsExported() {
			names = append(names, name.Name)
		}
	}
	for _, decl := range file.Decls {
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
					for _, name := range spec.Names {
						add(name)
					}
				}
			}
		}
	}
	return names
}

// A Limiter is made of what core shares with the packages beside it. Users see its methods only.
func TestLimiterShowsNothingOfItsInside(t *testing.T) {
	of := reflect.TypeFor[core.Limiter]()
	if of.NumField() == 0 {
		t.Error("Limiter has no fields: the test shows nothing")
	}
	for i := range of.NumField() {
		if field := of.Field(i); field.IsExported() || field.Anonymous {
			t.Errorf("users can reach %s.%s", of, field.Name)
		}
	}
}
