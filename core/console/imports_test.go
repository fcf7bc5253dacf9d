package console_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A service that does not import the page compiles nothing of it: only examples do. The page itself
// brings no dependency.
func TestImports(t *testing.T) {
	const module = "github.com/accesslimit/accesslimit/"
	list := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatalf("go list %v: %v", args, err)
		}
		return string(out)
	}
	packages := 0
	for line := range strings.Lines(list("-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...")) {
		words := strings.Fields(line)
		packages++
		if slices.Contains(words[1:], module+"core/console") && !strings.HasPrefix(words[0], module+"examples/") {
			t.Errorf("%s imports the page", words[0])
		}
	}
	if packages < 30 {
		t.Errorf("found %d packages only: the test shows nothing", packages)
	}
	allowed := []string{ // core and core/operate import most of them anyway
		module + "core", module + "core/adapter", module + "core/operate", module + "core/internal/panics", module + "core/internal/quote",
	}
	imports := strings.Fields(list("-f", `{{join .Imports " "}}`, module+"core/console"))
	for _, imported := range imports {
		if strings.Contains(imported, ".") && !slices.Contains(allowed, imported) {
			t.Errorf("the page imports %s", imported)
		}
	}
	if !slices.Contains(imports, module+"core") {
		t.Errorf("the page imports %v: the test shows nothing", imports)
	}
}
