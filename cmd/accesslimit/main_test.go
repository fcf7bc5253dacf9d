package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the commands print into testdata/*.txtar")

// The command is a process of its own in the scripts, as for its users.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"accesslimit": func() { os.Exit(mainCode()) }})
}

// TestFiles runs the scripts of the commands that need no Redis.
func TestFiles(t *testing.T) { runScripts(t, "testdata/files", nil) }

func runScripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir: dir, Setup: setup, UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "calls": calls, "redis": control, "traffic": traffic, "shown": shown, "spend": spend, "pause": pause, "goes": goes},
	})
}

// exits runs a command, and fails unless it exits with a status: exits 2 accesslimit chek.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("the status is %d, want %d", got, want)
	}
}
