package algorithm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// The spans of these tests, in microseconds.
const (
	millisecond = 1000
	second      = 1000 * millisecond
	hour        = 3600 * second
	day         = 24 * hour
)

const (
	early = 3_000_000_000 * second // in 2065, so that no Redis takes it for the past and expires what is written then
	late  = 4_100_000_000 * second // in 2099
)

// windows are spans that are easily got wrong: the shortest, one that 32 does not divide, the longest.
var windows = []int64{millisecond, 1001, second, 61 * 60 * second, day, algorithm.MaxWindow}

// counter is a counter of this process, used as the in-process store does.
type counter struct {
	limit algorithm.Limit
	state algorithm.State
}

// decide asks for a cost and takes it if it fits.
func (c *counter) decide(now, cost int64) algorithm.Verdict {
	v := c.limit.Look(&c.state, now, cost, true)
	if v.RetryAfter == 0 && cost > 0 {
		c.limit.Charge(&c.state, now, cost, "", &v)
	}
	return v
}

// look says what the counter would answer.
func (c *counter) look(now, cost int64) algorithm.Verdict {
	return c.limit.Look(&c.state, now, cost, false)
}

// bucket is a bucket that must be possible.
func bucket(t *testing.T, rate, window, burst int64) algorithm.Limit {
	t.Helper()
	limit, err := algorithm.Bucketed(rate, window, burst)
	if err != nil {
		t.Fatalf("Bucketed(%d, %d, %d): %v", rate, window, burst, err)
	}
	return limit
}

// caller makes up random calls of one counter.
type caller struct {
	*rand.Rand
	limit *algorithm.Limit
	now   int64
	last  algorithm.Verdict // what the call before was answered
}

func newCaller(limit *algorithm.Limit, seed uint64) *caller {
	c := &caller{Rand: rand.New(rand.NewPCG(seed, 1)), limit: limit}
	c.begin()
	return c
}

// begin sets the clock anew, anywhere in a window.
func (c *caller) begin() { c.now, c.last = early+c.Int64N(hour+3*c.limit.Window), algorithm.Verdict{} }

// next moves on to the next call and says what it costs. Many calls come where an answer changes.
func (c *caller) next() (cost int64) {
	switch c.IntN(10) {
	case 0:
		c.now++
	case 1, 2:
		c.now += c.Int64N(c.limit.Window/32 + 1)
	case 3:
		c.now += c.Int64N(c.limit.Window + 1)
	case 4:
		c.now += c.last.RetryAfter
	case 5:
		c.now += max(0, c.last.RetryAfter-1)
	case 6:
		c.now += max(0, c.last.ResetAfter-int64(c.IntN(2)))
	}
	if c.now > late {
		c.now = late
	}
	if c.IntN(4) == 0 {
		return 1 + c.Int64N(c.limit.Max)
	}
	return 1 + c.Int64N(min(3, c.limit.Max))
}

// model knows what an algorithm promises, in a way of its own. It is told of each call and of the answer to it.
type model interface {
	check(t *testing.T, now, cost int64, v algorithm.Verdict)
}

// play has a counter answer random calls, in short lives that each begin anew, before the eyes of a model.
func play(t *testing.T, limit algorithm.Limit, newModel func() model) {
	t.Helper()
	caller := newCaller(&limit, uint64(limit.Max+limit.Window))
	for range 40 {
		caller.begin()
		c, m := counter{limit: limit}, newModel()
		for range 100 {
			cost := caller.next()
			caller.last = c.decide(caller.now, cost)
			m.check(t, caller.now, cost, caller.last)
			wantHonest(t, &c, caller.now, cost, caller.last)
			if t.Failed() {
				t.Fatalf("with seed %d, at %d, cost %d: %+v", limit.Max+limit.Window, caller.now, cost, caller.last)
			}
		}
	}
}

// wantHonest checks the two waits of an answer against the counter itself: they are neither too short nor too long.
func wantHonest(t *testing.T, c *counter, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	if wait := v.RetryAfter; wait > 0 {
		if c.look(now+wait, cost).RetryAfter != 0 {
			t.Errorf("refused again after RetryAfter, %d", wait)
		}
		if c.look(now+wait-1, cost).RetryAfter != 1 {
			t.Errorf("1 µs before RetryAfter, %d, the wait is %d", wait, c.look(now+wait-1, cost).RetryAfter)
		}
	}
	if wait := v.ResetAfter; wait > 0 {
		if fresh := c.look(now+wait, 1); fresh.ResetAfter != 0 || fresh.Remaining != c.limit.Max {
			t.Errorf("not fresh after ResetAfter, %d: %+v", wait, fresh)
		}
		if used := c.look(now+wait-1, 1); used.ResetAfter != 1 {
			t.Errorf("1 µs before ResetAfter, %d, the wait is %d", wait, used.ResetAfter)
		}
	}
	if (v.ResetAfter == 0) != (v.Remaining == c.limit.Max) && c.limit.Kind != algorithm.TokenBucket {
		t.Errorf("ResetAfter %d with %d of %d left", v.ResetAfter, v.Remaining, c.limit.Max)
	}
}
