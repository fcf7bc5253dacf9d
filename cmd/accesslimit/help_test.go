package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The help of each command fits on a screen of 80 columns and 24 lines, and has an example.
func TestHelpFitsAScreen(t *testing.T) {
	for _, c := range append(newApp().Commands, newApp()) {
		var out bytes.Buffer
		app := newApp()
		app.Writer = &out
		if err := app.Run(t.Context(), strings.Fields("accesslimit "+strings.TrimPrefix(c.Name, "accesslimit")+" -h")); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if len(lines) > 24 {
			t.Errorf("%s: %d lines", c.Name, len(lines))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: %d columns: %s", c.Name, utf8.RuneCountInString(line), line)
			}
		}
		if c.Name != "accesslimit" && !strings.Contains(out.String(), "Example:\n    accesslimit "+c.Name) {
			t.Errorf("%s: no example in\n%s", c.Name, &out)
		}
	}
}

// Every command is run by a script, as a user would.
func TestEveryCommandIsRun(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	run := ""
	for _, script := range scripts {
		run += read(t, script)
	}
	for _, c := range newApp().Commands {
		if !strings.Contains(run, "\nexec accesslimit "+c.Name) {
			t.Errorf("no script runs %s", c.Name)
		}
	}
}
