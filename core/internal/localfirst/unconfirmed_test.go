package localfirst_test

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// The slots that the shared store may have taken without an answer are known to those who give them
// back, whatever answers in its place: nothing, a count in this process, a block, or a ban.
func TestUnconfirmedSlotsBehindAStandIn(t *testing.T) {
	slots, own := Windowed(algorithm.Concurrency, 2, Minute), Windowed(algorithm.FixedWindow, 9, Hour)
	blocked := []byte("test:{s}:block")
	for name, call := range map[string]func() []algorithm.Counter{
		"nothing": func() []algorithm.Counter { return []algorithm.Counter{Counter("s", slots, 1)} },
		"a count": func() []algorithm.Counter {
			c := Counter("s", slots, 1)
			c.LocalShare = 1
			return []algorithm.Counter{c}
		},
		"a count, of a limit that is not in force": func() []algorithm.Counter {
			c := Counter("s", slots, 1)
			c.LocalShare, c.CountsIfOverridden, c.Override = 1, true, &algorithm.OverrideQuery{Key: []byte("test:{s}:none"), Limit: slots}
			return []algorithm.Counter{c}
		},
		"a block": func() []algorithm.Counter {
			c := Counter("s", own, 1)
			c.Own, c.Override = true, &algorithm.OverrideQuery{Key: blocked, Limit: own}
			return []algorithm.Counter{Counter("s", slots, 1), c}
		},
		"a ban": func() []algorithm.Counter {
			return []algorithm.Counter{Counter("s", slots, 1), BanOf("s", 1, Minute, 0)}
		},
	} {
		shared := NewShared(t, 100)
		p := NewProcess(t, shared)
		var given []algorithm.Verdict
		p.DropUnconfirmedBy(func(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
			given = append(given, verdicts[0])
		})
		counters := call()
		verdicts := make([]algorithm.Verdict, len(counters))
		p.Decide(context.Background(), counters, true, verdicts)
		if len(given) > 0 {
			t.Errorf("%s: %+v although the store answered", name, given)
		}
		p.Bans.Remember(blocked, Hour, true)
		p.Bans.Remember(BanOf("s", 1, Minute, 0).Key, Hour, false)
		shared.Down.Store(true)
		p.Decide(context.Background(), counters, false, verdicts)
		if len(given) > 0 {
			t.Errorf("%s: %+v of a look", name, given)
		}
		p.Decide(context.Background(), counters, true, verdicts)
		if len(given) != 1 || given[0].Err == nil {
			t.Errorf("%s: %+v, want the failure", name, given)
		}
	}
}
