package core_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
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

// core depends on no adapter or framework, so a service that uses one framework compiles no other.
func TestCoreImportsNoFramework(t *testing.T) {
	deps := goList(t, "-deps", ".")
	if len(deps) < 50 {
		t.Fatalf("go list shows %d packages only", len(deps))
	}
	for _, dep := range deps {
		for _, framework := range []string{"gin-gonic", "labstack", "gofiber", "google.golang.org/grpc", "fasthttp", module + "examples", module + "bench"} {
			if strings.Contains(dep, framework) {
				t.Errorf("core imports %s", dep)
			}
		}
		for _, adapter := range adapters(t) {
			if dep == module+adapter {
				t.Errorf("core imports %s", dep)
			}
		}
		if dep == "testing" || dep == module+"core/limittest" || dep == module+"core/adaptertest" || strings.HasPrefix(dep, module+"internal/") {
			t.Errorf("core imports %s outside of its tests", dep)
		}
	}
}

// An adapter only forwards, so it needs no more than the exported names of core, core/adapter and, for
// clients, core/outgoing.
func TestAdaptersImportOnlyCore(t *testing.T) {
	for _, adapter := range adapters(t) {
		imports := goList(t, "-f", `{{join .Imports "\n"}}`, module+adapter)
		core := false
		for _, imported := range imports {
			own, isOurs := strings.CutPrefix(imported, module)
			core = core || own == "core"
			if isOurs && own != "core" && own != "core/adapter" && own != "core/outgoing" {
				t.Errorf("%s imports %s", adapter, imported)
			}
		}
		if !core {
			t.Errorf("%s imports %v, and not core: the test shows nothing", adapter, imports)
		}
	}
}

// An author of an adapter can read package adapter by itself.
func TestAdapterImportsNothingOfOurs(t *testing.T) {
	deps := goList(t, "-deps", module+"core/adapter")
	for _, dep := range deps {
		if strings.HasPrefix(dep, module) && dep != module+"core/adapter" {
			t.Errorf("core/adapter imports %s", dep)
		}
	}
	if !slices.Contains(deps, module+"core/adapter") {
		t.Errorf("go list shows %v", deps)
	}
}

// Tests that use limittest or adaptertest compile no other test library. A service's tests do not
// compile the suite for adapters.
func TestHelpersImportNoTestLibrary(t *testing.T) {
	for helper, unwanted := range map[string][]string{
		"core/limittest":   {"goleak", "rapid", "testify", module + "core/adaptertest"},
		"core/adaptertest": {"goleak", "rapid", "testify"},
	} {
		for _, dep := range goList(t, "-deps", module+helper) {
			if slices.ContainsFunc(unwanted, func(library string) bool { return strings.Contains(dep, library) }) {
				t.Errorf("%s imports %s", helper, dep)
			}
		}
	}
}
