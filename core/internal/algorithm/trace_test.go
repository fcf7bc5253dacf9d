package algorithm_test

import (
	"pgregory.net/rapid"

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
	// early is in 2065, so that no state that is written then has expired by a server's own clock.
	early = 3_000_000_000 * second
	late  = 4_100_000_000 * second // in 2099
)

// windows lists difficult spans: the shortest, one that 32 does not divide, and the longest.
var windows = []int64{millisecond, 1001, second, 61 * 60 * second, day, algorithm.MaxWindow}

// counter is a counter of this process, used as by the in-process store.
type counter struct {
	limit algorithm.Limit
	state algorithm.State
}

// decide charges a cost if it fits.
func (c *counter) decide(now, cost int64) algorithm.Verdict {
	var v algorithm.Verdict
	c.limit.Decide(&c.state, now, cost, "", &v)
	return v
}

// look returns what the counter would answer.
func (c *counter) look(now, cost int64) algorithm.Verdict {
	var v algorithm.Verdict
	c.limit.Look(&c.state, now, cost, false, &v)
	return v
}

// bucket returns the limit of a bucket, which must be possible.
func bucket(t failer, rate, window, burst int64) algorithm.Limit {
	t.Helper()
	limit, err := algorithm.Bucketed(rate, window, burst)
	if err != nil {
		t.Fatalf("Bucketed(%d, %d, %d): %v", rate, window, burst, err)
	}
	return limit
}

// later draws how much time passes, often so much that an answer changes.
func later(t *rapid.T, window int64, last algorithm.Verdict) int64 {
	switch rapid.IntRange(0, 8).Draw(t, "time") {
	case 1:
		return 1
	case 2, 3:
		return upTo(t, window/32, "part of a window")
	case 4:
		return upTo(t, window, "window")
	case 5:
		return last.RetryAfter
	case 6:
		return max(0, last.RetryAfter-1)
	case 7:
		return max(0, last.ResetAfter-rapid.Int64Range(0, 1).Draw(t, "early"))
	case 8:
		return last.Wait
	default:
		return 0
	}
}
