// The program typecheck checks the types of a module's packages and tests for another processor, with all that they import:
// GOARCH=386 typecheck ./... It reads the function bodies of the module alone and makes no code, so it takes
// seconds where a build for such a processor compiles everything anew ("make long" does that).
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// listed is what go list tells of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

func main() {
	packages, err := list(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	failed := false
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, p := range packages { // each behind those that it imports
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue // nothing to check, or what go test generates
		}
		if err := p.check(checked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// list returns the packages that match, with their tests and everything that they import.
func list(patterns []string) (packages []*listed, err error) {
	command := exec.Command("go", append([]string{"list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, patterns...)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(out); ; {
		p := new(listed)
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return packages, command.Wait()
		} else if err != nil {
			return nil, errors.Join(err, command.Wait())
		}
		packages = append(packages, p)
	}
}

// check checks the package's types and adds it to those that are checked, by their import paths.
func (p *listed) check(checked map[string]*types.Package) error {
	files, fset := []*ast.File(nil), token.NewFileSet()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	ours := p.Module != nil && p.Module.Main
	var all []error
	config := types.Config{
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if checked[path] == nil {
				return nil, fmt.Errorf("%s was not checked before", path)
			}
			return checked[path], nil
		}),
		Sizes:            types.SizesFor("gc", cmp.Or(os.Getenv("GOARCH"), runtime.GOARCH)),
		IgnoreFuncBodies: !ours,
		Error:            func(err error) { all = append(all, err) },
	}
	checked[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil)
	if !ours {
		return nil // an unused import, where a body is ignored
	}
	return errors.Join(all...)
}

// importer implements types.Importer.
type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
