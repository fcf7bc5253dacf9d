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
		one, three := algorithm.NewOp(algorithm.AllOrNone, counter("key", limit)), algorithm.NewOp(algorithm.AllOrNone, make([]algorithm.Counter, 3)...)
		look := algorithm.NewOp(algorithm.Looks, one.Counters...)
		for i := range three.Counters {
			three.Counters[i] = counter(fmt.Sprint("key", i), limit)
		}
		for what, decide := range map[string]func(){
			"decide":                  func() { s.Do(context.Background(), one) },
			"decide several together": func() { s.Do(context.Background(), three) },
			"look":                    func() { s.Do(context.Background(), look) },
		} {
			step := func() {
				c.now += second / 150 // through all sub-windows, sometimes admitted and sometimes refused
				decide()
			}
			for range 500 { // until the states have their room
				s.Do(context.Background(), one)
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
	none := counter("no key", limit)
	none.Cost = 2
	look, refuse := algorithm.NewOp(algorithm.Looks, none), algorithm.NewOp(algorithm.AllOrNone, none)
	turn, unused := algorithm.NewOp(algorithm.InTurn, counter("key", limit)), algorithm.Change{Charges: make([]algorithm.Charge, 1)}
	turn.Patience = second
	for what, do := range map[string]func(){
		"look at no key": func() { s.Do(ctx, look) },
		"refuse no key":  func() { s.Do(ctx, refuse) },
		"take turns": func() {
			s.Do(ctx, turn)
			unused.Charges[0] = turn.Counters[0].Charged(&turn.Verdicts[0])
			_ = s.Change(ctx, &unused)
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
