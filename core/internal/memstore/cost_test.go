package memstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A decision over a key that is there allocates nothing, whether it is admitted or refused, for one
// counter or several; nor does a look.
func TestDecideAllocatesNothing(t *testing.T) {
	for name, limit := range limits(t, 100) {
		s, c := newStore(100_000)
		one, three := []algorithm.Counter{counter("key", limit)}, make([]algorithm.Counter, 3)
		for i := range three {
			three[i] = counter(fmt.Sprint("key", i), limit)
		}
		verdicts := make([]algorithm.Verdict, 3)
		for what, decide := range map[string]func(){
			"decide":                  func() { s.Decide(context.Background(), one, true, verdicts[:1]) },
			"decide several together": func() { s.Decide(context.Background(), three, true, verdicts) },
			"look":                    func() { s.Decide(context.Background(), one, false, verdicts[:1]) },
		} {
			step := func() {
				c.now += second / 150 // through all sub-windows, sometimes admitted and sometimes refused
				decide()
			}
			for range 500 { // until the states have their room
				s.Decide(context.Background(), one, true, verdicts[:1])
				step()
			}
			if n := testing.AllocsPerRun(1000, step); n != 0 {
				t.Errorf("%s, to %s: %v allocations", name, what, n)
			}
		}
	}
}

// A refusal and a look create no entry, and turns that are taken and given back allocate nothing.
func TestOperationsAllocateNothing(t *testing.T) {
	s := New(100, nil)
	defer s.Close()
	ctx, limit := context.Background(), limits(t, 1)["bucket"]
	call, verdicts := []algorithm.Counter{counter("key", limit)}, make([]algorithm.Verdict, 1)
	none := []algorithm.Counter{counter("no key", limit)}
	none[0].Cost = 2
	charges := make([]algorithm.Charge, 1)
	for what, do := range map[string]func(){
		"look at no key": func() { s.Decide(ctx, none, false, verdicts) },
		"refuse no key":  func() { s.Decide(ctx, none, true, verdicts) },
		"take turns": func() {
			v := s.Reserve(ctx, &call[0], second)
			charges[0] = call[0].Charged(&v)
			_ = s.GiveBack(ctx, charges)
		},
	} {
		do()
		if n := testing.AllocsPerRun(1000, do); n != 0 {
			t.Errorf("to %s: %v allocations", what, n)
		}
	}
}

// A store that is unused, or closed already, can be closed. It goes on counting, but no longer
// sweeps.
func TestClose(t *testing.T) {
	New(100, nil).Close()
	s := New(100, nil)
	s.take("key", minute(2))
	s.Close()
	s.Close()
	if !s.take("key", minute(2)) || s.take("key", minute(2)) || !s.take("new", minute(2)) {
		t.Error("a closed store does not count on")
	}
	s.sweeper.run() // one that was under way meanwhile
	if s.sweeper.timer.Stop() {
		t.Error("a sweep is to come after Close")
	}
}
