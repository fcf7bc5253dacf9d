package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// README.md shows what the scripts named readme compare, with the commands that they run.
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
