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

// shown fails unless a page shows what the last command of a script printed, but for its numbers:
// shown README.md.
func shown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || pages[args[0]] == "" {
		ts.Fatalf("usage: shown README.md|OPERATING.md")
	}
	page, err := os.ReadFile(pages[args[0]])
	ts.Check(err)
	if text := indented(ts.ReadFile("stdout")); !strings.Contains(withoutNumbers(string(page)), withoutNumbers(text)) {
		ts.Fatalf("the page does not have\n%s", text)
	}
}

// pages has the paths of the pages that scripts name. Scripts run elsewhere.
var pages = map[string]string{"README.md": absolute("README.md"), "OPERATING.md": absolute("../../core/OPERATING.md")}

func absolute(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return absolute
}

// numbers are figures, with the words of a span of time, because it may be an even minute, and the
// versions of rules.
var numbers = regexp.MustCompile(`\b[0-9a-f]{12}\b|[0-9.]+( min( [0-9]+ s)?)?| +`)

// withoutNumbers returns a text with 0 for each number, and one space for several.
func withoutNumbers(text string) string {
	return numbers.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == ' ' {
			return " "
		}
		return "0"
	})
}

// indented returns the text as a page shows it.
func indented(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
