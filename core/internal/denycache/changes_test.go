package denycache_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// A refusal that was on its way when the key was reset is not repeated.
func TestARefusalOvertakenByAReset(t *testing.T) {
	shared := NewShared(t, 100)
	p, c := NewProcess(t, shared), Counter("user:a", Windowed(algorithm.SlidingWindow, 1, Hour), 1)
	p.MustTake(t, c)
	decided, reset := make(chan struct{}), make(chan struct{})
	shared.AfterDecide = func() {
		close(decided)
		<-reset
	}
	refused := make(chan algorithm.Verdict)
	go func() { refused <- p.Ask(c)[0] }()
	<-decided // waiting for the question is not enough: the Reset could still overtake it
	p.MustReset(t, c)
	close(reset)
	if v := <-refused; v.RetryAfter == 0 {
		t.Fatalf("%+v, want it refused before the reset", v)
	}
	shared.AfterDecide = nil
	p.MustTake(t, c)
}
