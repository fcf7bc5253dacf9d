package core_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
