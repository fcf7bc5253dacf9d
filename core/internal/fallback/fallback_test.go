package fallback_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// local returns a counter that is counted here while the shared store is down, by a share of its
// limit.
func local(subject string, limit *algorithm.Limit, cost int64, share float64) algorithm.Counter {
	c := Counter(subject, limit, cost)
	c.LocalShare = share
	return c
}

// One of two servers is down. The other is charged for the calls that pass, and gets back what it
// was charged for calls that are refused here.
func TestOneOfTwoServersIsDown(t *testing.T) {
	limit := Windowed(algorithm.SlidingWindow, 10, Hour)
	shared := NewShared(t, 1000)
	shared.DownFor = "user:down"
	p := NewProcess(t, shared)
	call := []algorithm.Counter{Counter("user:up", limit, 1), local("user:down", limit, 1, 0.3)}
	for i := range 5 {
		v := p.Ask(call...)
		if passes := i < 3; algorithm.Passes(call, v) != passes || v[1].From != algorithm.FromLocal || v[1].Instead == nil || v[1].Err != nil {
			t.Fatalf("call %d: %+v", i, v)
		}
		// The counter as it will be once the charge is given back.
		if v[0].From != algorithm.FromStore || v[0].Remaining != int64(9-min(i, 2)) {
			t.Fatalf("call %d: %+v", i, v[0])
		}
		shared.Close() // waits for what is given back
	}
	if left := shared.Left(call[0]); left != 7 {
		t.Errorf("the server that answers has %d left, want 7 after three calls that passed", left)
	}
}

// A counter that refuses no call, on the server that answers, does not keep others from being counted
// here.
func TestALenientRuleElsewhereStopsNothing(t *testing.T) {
	shared := NewShared(t, 1000)
	shared.DownFor = "user:down"
	p := NewProcess(t, shared)
	lenient := Counter("user:up", Windowed(algorithm.FixedWindow, 1, Hour), 1)
	lenient.Behind = 1
	down := local("user:down", Windowed(algorithm.FixedWindow, 3, Hour), 1, 1)
	for i := range 5 {
		v := p.Ask(down, lenient)
		if (i > 0) != (v[1].RetryAfter > 0) || v[0].Remaining != int64(max(0, 2-i)) || (i > 2) != (v[0].RetryAfter > 0) {
			t.Fatalf("call %d: %+v", i, v)
		}
	}
}

// When the server that answers refuses, nothing is charged here.
func TestNothingIsChargedHereIfAServerRefuses(t *testing.T) {
	shared := NewShared(t, 1000)
	shared.DownFor = "user:down"
	p := NewProcess(t, shared)
	up := Counter("user:up", Windowed(algorithm.FixedWindow, 1, Hour), 1)
	down := local("user:down", Windowed(algorithm.FixedWindow, 3, Hour), 1, 1)
	for i := range 4 {
		if v := p.Ask(up, down); (i > 0) != (v[0].RetryAfter > 0) || v[1].RetryAfter != 0 {
			t.Fatalf("call %d: %+v", i, v)
		}
	}
	if n := p.Len(); n != 1 {
		t.Errorf("%d counters here", n)
	}
	if v := p.Ask(down)[0]; v.Remaining != 1 {
		t.Errorf("%+v, want one left of three: one call passed before, and this", v)
	}
}

// A caller whose context has ended is counted nowhere.
func TestACallerHasLeft(t *testing.T) {
	shared := NewShared(t, 1000)
	p := NewProcess(t, shared)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := local("user:a", Windowed(algorithm.FixedWindow, 100, Hour), 1, 1)
	c.Lease = 10
	if v := p.Do(ctx, algorithm.NewOp(algorithm.AllOrNone, c)); v[0].Ended == nil || p.Len() != 0 {
		t.Errorf("%+v, %d counters here", v[0], p.Len())
	}
}

// A Reset holds here too.
func TestReset(t *testing.T) {
	shared := NewShared(t, 1000)
	p := NewProcess(t, shared)
	c := local("user:a", Windowed(algorithm.FixedWindow, 1, Hour), 1, 1)
	passes := func() bool { return algorithm.Passes([]algorithm.Counter{c}, p.Ask(c)) }
	shared.Down.Store(true)
	if !passes() || passes() {
		t.Fatal("want one call to pass, and the next to be refused")
	}
	shared.Down.Store(false)
	p.MustReset(t, c)
	shared.Down.Store(true)
	if !passes() {
		t.Error("what was reset is still counted here")
	}
}
