package algorithm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const root = "../../.."

// listed returns the files of CONTRIBUTING.md's tables: those in this folder, the others, and of these
// the ones that not every algorithm is in.
func listed(t *testing.T) (here, elsewhere, perhaps []string) {
	t.Helper()
	page := read(t, "CONTRIBUTING.md")
	_, page, _ = strings.Cut(page, "## A further algorithm")
	page, _, _ = strings.Cut(page, "\n## ")
	first, second, _ := strings.Cut(page, "| elsewhere |")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (only if)?")
	for _, match := range row.FindAllStringSubmatch(first, -1) {
		if match[2] == "" {
			here = append(here, match[1])
		}
	}
	for _, match := range row.FindAllStringSubmatch(second, -1) {
		if match[2] == "" {
			elsewhere = append(elsewhere, match[1])
		} else {
			perhaps = append(perhaps, match[1])
		}
	}
	if len(here) < 3 || len(elsewhere) < 4 {
		t.Fatalf("CONTRIBUTING.md lists %v and %v", here, elsewhere)
	}
	return here, elsewhere, perhaps
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every algorithm is in every file that CONTRIBUTING.md lists for a new algorithm. Pauses, which are
// no limits, are only in the files of this folder, and in REDIS.md. Concurrency is in no promise about
// permits.
func TestEveryAlgorithmIsComplete(t *testing.T) {
	here, elsewhere, _ := listed(t)
	for _, kind := range algorithm.Kinds() {
		p := kind.Properties()
		mentions := func(path string, names ...string) {
			text := read(t, path)
			if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) }) {
				t.Errorf("%s: %s has none of %q", p.Name, path, names)
			}
		}
		for _, file := range here {
			path := "core/internal/algorithm/" + strings.Replace(file, "NAME", p.File, 1)
			if strings.Contains(file, "NAME") {
				read(t, path)
			} else {
				mentions(path, p.Name+":")
			}
		}
		for _, file := range elsewhere {
			if file != "core/REDIS.md" && (!p.HasPermits() || p.Slots && strings.HasPrefix(file, "internal/promise")) {
				continue
			}
			if file == "README.md" {
				wantExample(t, p)
				continue
			}
			if strings.Contains(file, "NAME") {
				read(t, strings.Replace(file, "NAME", p.File, 1))
				continue
			}
			mentions(file, p.Name, p.Tag, `"`+p.File+".svg")
		}
		mentions("core/REDIS.md", "\n| "+p.Tag+" | ")
		if name := core.Algorithm(kind).String(); name != p.Name && p.HasPermits() {
			t.Errorf("core calls %s %q", p.Name, name)
		}
	}
}

// wantExample fails unless the README has a limit with the words of an algorithm.
func wantExample(t *testing.T, p *algorithm.Properties) {
	t.Helper()
	if example := regexp.MustCompile("`[0-9][^`]* " + p.Text + "( [0-9]+)?`"); p.Text != "" && !example.MatchString(read(t, "README.md")) {
		t.Errorf("%s: README.md has no limit with %q", p.Name, p.Text)
	}
}

// No two algorithms share a name, a tag, or a word in the text form of limits.
func TestAlgorithmsHaveDistinctNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, kind := range algorithm.Kinds() {
		p := kind.Properties()
		for _, name := range []string{"name " + p.Name, "file " + p.File, "tag " + p.Tag, "word " + p.Text} {
			if seen[name] && name != "word " {
				t.Errorf("two algorithms have the %s", name)
			}
			seen[name] = true
		}
	}
}

// No code outside this folder names an algorithm, but for the files that CONTRIBUTING.md lists. So
// none compares an algorithm with one of the constants, nor switches on it.
func TestNoOtherCodeDependsOnTheAlgorithm(t *testing.T) {
	folders, err := fs.Glob(os.DirFS(root), "*limit")
	if err != nil || len(folders) < 5 {
		t.Fatalf("the adapters are %v: %v", folders, err)
	}
	_, elsewhere, perhaps := listed(t)
	// The suite for adapters tries what single algorithms promise.
	except := append(slices.Concat(elsewhere, perhaps), "core/internal/algorithm", "core/adaptertest")
	for _, folder := range append(folders, "core") {
		err := fs.WalkDir(os.DirFS(root), folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case slices.Contains(except, path) && entry.IsDir():
				return fs.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !slices.Contains(except, path):
				wantNoAlgorithm(t, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func wantNoAlgorithm(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join(root, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && isAlgorithm(name.Name) {
			t.Errorf("%v names %s", files.Position(name.Pos()), name.Name)
		}
		return true
	})
}

// isAlgorithm reports whether a name is one of the constants.
func isAlgorithm(name string) bool {
	return slices.ContainsFunc(algorithm.Kinds(), func(k algorithm.Kind) bool { return k.Properties().Name == name })
}
