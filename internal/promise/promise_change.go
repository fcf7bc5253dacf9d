package promise

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// ChangingLimits: another Max or Burst takes effect with the next call and keeps past use, even
// while some processes still have the old limit. Another Window or Algorithm is another counter.
func ChangingLimits(t *testing.T, e Engine) {
	eachAlgorithm(t, func(t *testing.T, f facts) {
		t.Run("one after the other", func(t *testing.T) { changeByTurns(t, e, f) })
		t.Run("at once", func(t *testing.T) { changeUnderLoad(t, e, f) })
		t.Run("another counter", func(t *testing.T) { changeCounters(t, e, f) })
	})
}

// changeByTurns raises and lowers a limit between the calls of two processes.
func changeByTurns(t *testing.T, e Engine, f facts) {
	both := e.limiters(t, 2)
	c := counter{t: t, limiter: both[0], name: "name", subject: "subject"}
	other := c
	other.limiter = both[1]
	c.by(f.lasting(10)).mustTake(5)
	other.by(f.lasting(20)).wantLeft(15)
	other.by(f.lasting(4)).wantLeft(0)
	other.by(f.lasting(4)).mustRefuse(1)
	c.by(f.lasting(10)).wantLeft(5)
	other.by(f.lasting(20)).mustTake(15)
	c.by(f.lasting(10)).wantLeft(0)
	c.by(f.lasting(10)).mustRefuse(1)
	other.by(f.lasting(20)).mustRefuse(1)
	c.by(f.lasting(21)).mustTake(1)
	c.by(f.lasting(10_000)).wantLeft(10_000 - 21)
}

// changeUnderLoad makes many calls in two processes with different limits. Each process lets calls
// pass until its own limit is reached.
func changeUnderLoad(t *testing.T, e Engine, f facts) {
	both := e.limiters(t, 2)
	limits := [2]core.Limit{f.lasting(100), f.lasting(160)}
	var passed [2]atomic.Int64
	together(32, func(goroutine int) {
		who := goroutine % 2
		for range 15 {
			d, err := both[who].MustCounter("name", limits[who]).Allow(context.Background(), "subject")
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				passed[who].Add(1)
			}
		}
	})
	narrow, all := passed[0].Load(), passed[0].Load()+passed[1].Load()
	if narrow > 100 || all != 160 {
		t.Errorf("%d passed by the limit of 100, and %d in all, want at most 100 and 160", narrow, all)
	}
}

// changeCounters makes changes that lead to another counter.
func changeCounters(t *testing.T, e Engine, f facts) {
	c := counter{t: t, limiter: e.limiters(t, 1)[0], name: "name", subject: "subject", limit: f.lasting(10)}
	c.mustTake(10)
	longer := c.limit
	longer.Window *= 2
	c.by(longer).wantLeft(10)
	for _, other := range algorithms {
		if other.Algorithm != f.Algorithm {
			c.by(other.lasting(10)).wantLeft(10)
		}
	}
	c.wantLeft(0)
}
