package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/clock"
)

// moved is a clock beside a wall clock that a test moves.
type moved struct{ clock.Clock }

func started() (c *moved, wall *time.Duration) {
	c, wall = new(moved), new(time.Duration)
	c.Start()
	start := time.Now()
	c.Read = func() (int64, int64) { return time.Now().Add(*wall).UnixNano(), int64(time.Since(start)) }
	return c, wall
}

// wantNow checks the time, and by how much the wall clock is taken to be ahead.
func (c *moved) wantNow(t *testing.T, ahead time.Duration) {
	t.Helper()
	if awake := c.Awake(); awake != time.Now().UnixNano() || c.Ahead() != ahead.Microseconds() {
		t.Errorf("it is %d, and %d µs ahead, want %d and %v", awake, c.Ahead(), time.Now().UnixNano(), ahead)
	}
}

func TestClockFollowsTheWallClock(t *testing.T) {
	for name, test := range map[string]struct{ jump, want time.Duration }{
		"suspended":         {8 * time.Hour, 8 * time.Hour},
		"set ahead":         {50 * 365 * 24 * time.Hour, 50 * 365 * 24 * time.Hour},
		"set back":          {-24 * time.Hour, -24 * time.Hour},
		"a little set back": {-2 * time.Second, -2 * time.Second},
		"slewed, ahead":     {5 * time.Millisecond, 0},
		"slewed, behind":    {-900 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, wall := started()
				c.wantNow(t, 0)
				*wall += test.jump
				for range 3 {
					time.Sleep(time.Minute)
					c.wantNow(t, test.want)
				}
				if passed := c.Awake()/1000 + max(0, test.want.Microseconds()); c.Passed() != passed {
					t.Errorf("%d µs have passed, want %d", c.Passed(), passed)
				}
				if jumped := c.Jumps() != 0; jumped != (test.want != 0) {
					t.Errorf("%d jumps", c.Jumps())
				}
			})
		})
	}
}

// A goroutine may lose its processor between the two readings. So a step that only one of two
// comparisons finds is not followed.
func TestClockIgnoresABadReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, wall := started()
		well, readings := c.Read, 0
		c.Read = func() (int64, int64) {
			if readings++; readings%4 == 1 {
				*wall = -time.Minute
			}
			defer func() { *wall = 0 }()
			return well()
		}
		for range 8 {
			time.Sleep(time.Second)
			c.wantNow(t, 0)
		}
		if readings < 8 {
			t.Errorf("only %d readings", readings)
		}
	})
}
