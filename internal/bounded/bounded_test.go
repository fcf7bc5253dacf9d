package bounded

import (
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
)

// failed is a test that records how it fails.
type failed struct {
	testing.TB
	with []string
}

func (f *failed) Errorf(format string, args ...any) {
	f.with = append(f.with, format)
	for _, arg := range args {
		if text, ok := arg.([]byte); ok {
			f.with = append(f.with, string(text))
		}
	}
}

func TestACleanupThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, release := &failed{TB: t}, make(chan struct{})
		defer close(release)
		run(own, func() { <-release }, limit)
		if len(own.with) != 2 || !strings.Contains(own.with[1], "TestACleanupThatHangs.func1.1") {
			t.Errorf("got %q, want a failure with the stack of the function", own.with)
		}
	})
}

func TestACleanupThatReturns(t *testing.T) {
	own, ran := &failed{TB: t}, false
	run(own, func() { ran = true }, limit)
	if !ran || own.with != nil {
		t.Errorf("ran %v, %q", ran, own.with)
	}
}

func TestWaitingForAProcess(t *testing.T) {
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := Wait(c); err != nil {
		t.Error(err)
	}
}
