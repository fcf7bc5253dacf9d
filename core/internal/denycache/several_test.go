package denycache_test

import (
	"context"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// A refusal by one of several servers is repeated whatever happens to the counters on the others.
// It reports nothing about those, because calls that pass charge them all the time.
func TestARefusalByOneOfSeveralServers(t *testing.T) {
	shared := Shards{Shared: NewShared(t, 100)}
	p := NewProcess(t, shared)
	limit := Windowed(algorithm.SlidingWindow, 1, Hour)
	own, also := Counter("user:a", limit, 1), Counter("user:a", Windowed(algorithm.FixedWindow, 5, Hour), 1)
	all, other := Counter("all", Windowed(algorithm.SlidingLog, 10, Hour), 1), Counter("user:b", limit, 1)
	for name, call := range map[string][]algorithm.Counter{"first": {own, also, all}, "last": {all, own, also}} {
		t.Run(name, func(t *testing.T) {
			others := slices.IndexFunc(call, func(c algorithm.Counter) bool { return HashTag(c) == "all" })
			p.MustTake(t, call...)
			// So that any permit of the log may come back next, and the log is never steady.
			p.MustTake(t, all)
			first := p.Ask(call...)
			if algorithm.Passes(call, first) || first[others].Remaining != 8 {
				t.Fatalf("%+v", first)
			}
			p.MustTake(t, other, all)
			shared.Asked.Store(0)
			for i, v := range p.Ask(call...) {
				switch {
				case i == others:
					if v != (algorithm.Verdict{From: algorithm.FromNobody}) {
						t.Errorf("of a counter that was not asked it says %+v", v)
					}
				case v.From != algorithm.FromRefusal || v.Remaining != first[i].Remaining || (v.RetryAfter > 0) != (first[i].RetryAfter > 0):
					t.Errorf("%+v, after %+v", v, first[i])
				}
			}
			shared.WantAsked(t, 0)
			p.Ask(call[:len(call)-1]...) // another call
			shared.WantAsked(t, 1)
			// Changes on the server that refused are seen at once.
			for _, c := range []algorithm.Counter{own, also} {
				_ = p.Change(context.Background(), &algorithm.Change{Charges: []algorithm.Charge{{Key: c.Key, Limit: c.Limit}}})
				p.Ask(call...)
				shared.WantAsked(t, 1)
				p.Ask(call...)
				shared.WantAsked(t, 0)
			}
			p.MustReset(t, own, also, all, other)
		})
	}
}
