package core_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// What a package depends on outside of its tests is not among these. A service that uses one framework
// compiles no other, and its tests compile no test library and not the suite for adapters. An author of
// an adapter can read package adapter by itself.
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
