package core_test

import (
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// mapLine is a line of a map of the code: what is declared, and in which file or folder.
var mapLine = regexp.MustCompile(`(?m)^//\t *(?:\w+\.)?(\w+)(?:, \w+)? {2,}(\S+)`)

// CONTRIBUTING.md says of each folder with code in core and internal, once, what is there.
func TestContributingMapsEveryFolder(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(page), "## Where things are")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for _, folder := range goList(t, "-f", "{{.ImportPath}}", "./...", "../internal/...") {
		name := "`" + strings.TrimPrefix(folder, module) + "/`"
		count := 0
		for row := range strings.Lines(rows) {
			if cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | "); strings.Contains(cell, name) {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%s has %d rows", name, count)
		}
	}
}

// The maps of the code name functions and types where they are declared.
func TestMapsOfTheCode(t *testing.T) {
	for _, of := range []string{"doc.go", "internal/engine/engine.go", "internal/redisstore/doc.go"} {
		text, err := os.ReadFile(of)
		if err != nil {
			t.Fatal(err)
		}
		lines := mapLine.FindAllStringSubmatch(string(text), -1)
		for _, line := range lines {
			if !isDeclared(t, filepath.Dir(of), line[1], line[2]) {
				t.Errorf("%s: %s does not declare %s", of, line[2], line[1])
			}
		}
		if len(lines) < 8 {
			t.Errorf("%s: only %d lines were understood", of, len(lines))
		}
	}
}

// isDeclared reports whether a function or type of this name is declared in a file or a folder, which is
// relative to a folder or to the module.
func isDeclared(t *testing.T, folder, name, place string) bool {
	declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )` + name + `\b`)
	for _, pattern := range []string{filepath.Join(folder, place), filepath.Join("..", place), filepath.Join(folder, place, "*.go")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && declared.Match(text) {
				return true
			}
		}
	}
	return false
}

// goList runs go list in this directory and returns the words that it prints.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

const module = "github.com/accesslimit/accesslimit/"

// adapters returns the folders of the adapters.
func adapters(t *testing.T) (names []string) {
	t.Helper()
	names, err := fs.Glob(os.DirFS(".."), "*limit")
	names = slices.DeleteFunc(names, func(name string) bool { // core cannot list what is in another module
		_, err := os.Stat("../" + name + "/go.mod")
		return err == nil
	})
	if err != nil || len(names) < 5 {
		t.Fatalf("the adapters are %v: %v", names, err)
	}
	return names
}

// Users of any adapter get what the root module requires, so a dependency of a further adapter belongs
// to a module of its own.
func TestTheRootRequiresNothingMore(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json", "../go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range file.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	want := strings.Fields(`github.com/bmatcuk/doublestar/v4 github.com/dunglas/httpsfv github.com/fsnotify/fsnotify github.com/gin-gonic/gin
		github.com/gofiber/fiber/v2 github.com/labstack/echo/v4 github.com/redis/go-redis/v9 github.com/sony/gobreaker/v2 github.com/valyala/fasthttp
		go.uber.org/goleak go.yaml.in/yaml/v3 golang.org/x/sync google.golang.org/genproto/googleapis/rpc google.golang.org/grpc
		google.golang.org/protobuf pgregory.net/rapid`)
	if !slices.Equal(direct, want) {
		t.Errorf("the root requires %q, want %q", direct, want)
	}
}

// No package depends on any of these outside of its tests. So a service that uses one framework compiles
// no other, and its tests compile neither a test library nor the suite for adapters. An author of an
// adapter can read package adapter by itself.
func TestDependencies(t *testing.T) {
	const frameworks, libraries = `gin-gonic|labstack|gofiber|google.golang.org/grpc|fasthttp`, `goleak|rapid|testify`
	for name, unwanted := range map[string]string{
		"core":             frameworks + `|^testing$|^` + module + `(examples|bench|internal/|core/limittest|core/adaptertest|(` + strings.Join(adapters(t), "|") + `)$)`,
		"core/adapter":     `^` + module + `([^c]|core$|core/([^a]|adapter.))`,
		"core/limittest":   libraries + `|^` + module + `core/adaptertest`,
		"core/adaptertest": libraries,
	} {
		deps := goList(t, "-deps", module+name)
		if !slices.Contains(deps, module+name) {
			t.Fatalf("go list shows %v", deps)
		}
		for _, dep := range deps {
			if regexp.MustCompile(unwanted).MatchString(dep) {
				t.Errorf("%s imports %s", name, dep)
			}
		}
	}
}

// An adapter only forwards, so it needs no more than the exported names of core, core/adapter and, for
// clients, core/outgoing.
func TestAdaptersImportOnlyCore(t *testing.T) {
	for _, adapter := range adapters(t) {
		imports := goList(t, "-f", `{{join .Imports "\n"}}`, module+adapter)
		if !slices.Contains(imports, module+"core") {
			t.Errorf("%s imports %v, and not core: the test shows nothing", adapter, imports)
		}
		for _, imported := range imports {
			if own, isOurs := strings.CutPrefix(imported, module); isOurs && own != "core" && own != "core/adapter" && own != "core/outgoing" {
				t.Errorf("%s imports %s", adapter, imported)
			}
		}
	}
}

// Nobody can survey a long page of documentation. So a new name replaces an old one, or is a
// method.
func TestSizeOfTheAPI(t *testing.T) {
	names := exportedNames(t, ".")
	if len(names) > 126 {
		t.Errorf("core exports %d names, want at most 126: %v", len(names), names)
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
	files, err := filepath.Glob(dir + "/[a-z]*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, parsed := token.NewFileSet(), []*ast.File(nil)
	for _, name := range slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	of, err := doc.NewFromFiles(fset, parsed, module+"core")
	if err != nil {
		t.Fatal(err)
	}
	values, funcs := slices.Concat(of.Consts, of.Vars), of.Funcs
	for _, each := range of.Types {
		names = append(names, each.Name)
		values, funcs = slices.Concat(values, each.Consts, each.Vars), append(funcs, each.Funcs...)
	}
	for _, value := range values {
		names = append(names, value.Names...)
	}
	for _, function := range funcs {
		names = append(names, function.Name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !token.IsExported(name) })
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
