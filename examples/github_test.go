package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The workflow runs the project's own checks with the Go of go.mod, the tests also with the newest,
// and at night all that "make nightly" does. Nobody can replace its actions.
func TestWorkflow(t *testing.T) {
	var workflow struct {
		On   map[string]any
		Jobs map[string]struct {
			Strategy struct{ Matrix struct{ Target []string } }
			Steps    []struct {
				Uses, Run string
				With      map[string]any
			}
		}
	}
	parse(t, "../.github/workflows/ci.yml", &workflow)
	for _, event := range []string{"push", "pull_request", "schedule"} {
		if _, ok := workflow.On[event]; !ok {
			t.Errorf("does not run on %s", event)
		}
	}
	var commands, versions []string
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Run != "" {
				commands = append(commands, step.Run)
			} else if !regexp.MustCompile(`^actions/[\w-]+@[0-9a-f]{40}$`).MatchString(step.Uses) {
				t.Errorf("%s is not pinned", step.Uses)
			}
			for _, setting := range []string{"go-version-file", "go-version"} {
				if version, ok := step.With[setting].(string); ok {
					versions = append(versions, version)
				}
			}
		}
	}
	slices.Sort(commands)
	slices.Sort(versions)
	if !slices.Equal(commands, []string{".ci/run", "make ${{ matrix.target }}", "make test", "make vulnerabilities"}) ||
		!slices.Equal(versions, []string{"go.mod", "go.mod", "go.mod", "stable"}) {
		t.Errorf("runs %v with the Go of %v", commands, versions)
	}
	makefile, err := os.ReadFile("../Makefile")
	if targets := strings.Join(workflow.Jobs["nightly"].Strategy.Matrix.Target, " "); err != nil || !strings.Contains(string(makefile), "\nnightly: "+targets+" ##") {
		t.Errorf("runs %s at night, which make nightly does not", targets)
	}
}

// Dependabot watches the go.mod of every module.
func TestDependabotKnowsEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	parse(t, "../.github/dependabot.yml", &config)
	var watched []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			watched = append(watched, u.Directories...)
		}
	}
	slices.Sort(watched)
	if want := modules(t); !slices.Equal(watched, want) {
		t.Errorf("watches %v, want %v", watched, want)
	}
}

// modules returns the folders with a go.mod, sorted, as Dependabot writes them.
func modules(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if entry.Name() == "go.mod" {
			all = append(all, filepath.ToSlash(filepath.Join("/", strings.TrimPrefix(filepath.Dir(path), ".."))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func parse(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text(t, path)), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
