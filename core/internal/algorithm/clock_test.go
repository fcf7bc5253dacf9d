package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// clockCase is a limit, with the longest possible wait for it.
type clockCase struct {
	name    string
	limit   algorithm.Limit
	longest int64
}

func clockCases(t *testing.T) []clockCase {
	return []clockCase{
		{"sliding window", algorithm.Windowed(algorithm.SlidingWindow, 10, 60*second), 60*second + subWindow(60*second)},
		{"sliding log", algorithm.Windowed(algorithm.SlidingLog, 10, 60*second), 60 * second},
		{"calendar window", algorithm.Windowed(algorithm.CalendarWindow, 10, 60*second), 60 * second},
		{"fixed window", algorithm.Windowed(algorithm.FixedWindow, 10, 60*second), 60 * second},
		{"bucket", bucket(t, 10, 60*second, 10), 60 * second},
		{"bucket with a burst", bucket(t, 7, second, 70), 10 * second},
		{"bucket that counts milliseconds", bucket(t, 30, 2*hour, 30), 2 * hour},
	}
}

// A clock that steps back an hour mints nothing and blocks nobody for longer than a full window or
// refill.
func TestClockSteppedBack(t *testing.T) {
	for _, tc := range clockCases(t) {
		t.Run(tc.name, func(t *testing.T) {
			c := counter{limit: tc.limit}
			c.decide(early, tc.limit.Max)
			back := int64(early - hour)
			v := c.decide(back, 1)
			if v.RetryAfter == 0 || v.Remaining != 0 {
				t.Errorf("minted: %+v", v)
			}
			if v.RetryAfter > tc.longest || v.ResetAfter > tc.longest {
				t.Errorf("blocked for longer than %d: %+v", tc.longest, v)
			}
			wantHonest(t, &c, back, 1, v)
			if v := c.decide(back+v.RetryAfter, 1); v.RetryAfter != 0 {
				t.Errorf("refused again after the wait: %+v", v)
			}
		})
	}
}

// While the clock keeps stepping back, no more calls pass than permits come back in the time by
// which it has gone forward.
func TestClockThatKeepsSteppingBackMintsNothing(t *testing.T) {
	for _, tc := range clockCases(t) {
		t.Run(tc.name, func(t *testing.T) {
			c := counter{limit: tc.limit}
			c.decide(early, tc.limit.Max)
			now := int64(early)
			for range 50 {
				now -= hour
				if v := c.decide(now, 1); v.RetryAfter == 0 {
					t.Fatalf("after another hour back: %+v", v)
				}
			}
		})
	}
}

// If the clock steps forward, windows end as if that time had passed.
func TestClockSteppedForward(t *testing.T) {
	for _, tc := range clockCases(t) {
		c := counter{limit: tc.limit}
		c.decide(early, tc.limit.Max)
		if v := c.decide(early+3*hour, tc.limit.Max); v.RetryAfter != 0 {
			t.Errorf("%s: %+v", tc.name, v)
		}
	}
}
