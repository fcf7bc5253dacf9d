// Package bounded keeps tests from waiting for ever when they clean up. Its Listener is for the
// servers and proxies that tests start.
package bounded

import (
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// limit is far longer than any cleanup takes, also on a busy machine.
const limit = time.Minute

// Cleanup runs a function when the test ends, as t.Cleanup does. If it has not returned within a
// minute, the test fails with the stacks of all goroutines, and does not wait for it any longer, so
// that earlier failures are printed too.
func Cleanup(t testing.TB, f func()) {
	t.Helper()
	t.Cleanup(func() { run(t, f, limit) })
}

func run(t testing.TB, f func(), limit time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		stacks := make([]byte, 1<<20)
		t.Errorf("a cleanup has not returned within %v:\n%s", limit, stacks[:runtime.Stack(stacks, true)])
	}
}

// Wait returns what command.Wait does. It kills the process if it has not ended within a minute.
func Wait(command *exec.Cmd) error {
	defer time.AfterFunc(limit, func() { _ = command.Process.Kill() }).Stop()
	return command.Wait()
}
