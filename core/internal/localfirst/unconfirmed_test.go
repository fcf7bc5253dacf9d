package localfirst_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// The slots that the shared store may have taken without an answer are known to those who give them
// back, whatever answers in its place: nothing, or a count in this process.
func TestUnconfirmedSlotsBehindAStandIn(t *testing.T) {
	slots := Windowed(algorithm.Concurrency, 2, Minute)
	for name, share := range map[string]float64{"nothing": 0, "a count": 1} {
		shared := NewShared(t, 100)
		p := NewProcess(t, shared)
		var given []algorithm.Verdict
		p.DropUnconfirmedBy(func(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
			given = append(given, verdicts[0])
		})
		c := Counter("s", slots, 1)
		c.LocalShare = share
		p.Ask(c)
		if len(given) > 0 {
			t.Errorf("%s: %+v although the store answered", name, given)
		}
		shared.Down.Store(true)
		p.Do(context.Background(), algorithm.NewOp(algorithm.Looks, c))
		if len(given) > 0 {
			t.Errorf("%s: %+v of a look", name, given)
		}
		p.Ask(c)
		if len(given) != 1 || given[0].Err == nil {
			t.Errorf("%s: %+v, want the failure", name, given)
		}
	}
}
