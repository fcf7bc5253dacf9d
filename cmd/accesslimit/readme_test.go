package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// README.md has the commands that the scripts named readme run, and shows what they compare.
func TestReadme(t *testing.T) {
	page := read(t, "README.md")
	scripts, err := filepath.Glob("testdata/*/*readme.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	shown := 0
	for _, script := range scripts {
		commands, outputs, _ := strings.Cut(read(t, script), "\n\n")
		for _, line := range strings.Split(commands, "\n") {
			command, ok := strings.CutPrefix(line, "exec accesslimit ")
			if !ok {
				continue
			}
			if !strings.Contains(page, "    $ accesslimit "+command+"\n") {
				t.Errorf("the page does not have %s", command)
			}
			shown++
		}
		for _, output := range strings.Split(outputs, "\n-- ")[1:] {
			name, text, _ := strings.Cut(output, " --\n")
			if strings.HasSuffix(name, ".txt") && !strings.Contains(page, indented(text)) {
				t.Errorf("the page does not have\n%s", indented(text))
			}
		}
	}
	if shown < 2 {
		t.Errorf("%d commands", shown)
	}
}

// shown fails unless README.md shows what the last command of a script printed, but for its numbers.
func shown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: readme")
	}
	page, err := os.ReadFile(readme)
	ts.Check(err)
	if text := indented(ts.ReadFile("stdout")); !strings.Contains(withoutNumbers(string(page)), withoutNumbers(text)) {
		ts.Fatalf("the page does not have\n%s", text)
	}
}

// readme is the page. Scripts run elsewhere.
var readme, _ = filepath.Abs("README.md")

var numbers = regexp.MustCompile(`[0-9]+| +`)

// withoutNumbers returns a text with 0 for each number, and one space for several.
func withoutNumbers(text string) string {
	return numbers.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == ' ' {
			return " "
		}
		return "0"
	})
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
