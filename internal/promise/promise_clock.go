package promise

import (
	"testing"
	"time"
)

// OneClock: only the servers' clock counts. If it steps back, no permits are created, and no caller
// waits longer than for a counter that was used up just now. If it steps forward, it is as if the
// time had passed. Charges made at that time still count when it steps back again. Refunds give
// back nothing that others were charged.
//
// In this process there is nothing to test, because its clock never steps.
func OneClock(t *testing.T, e Engine) {
	if e.inProcess() {
		return
	}
	lab := e.newLab(t)
	lab.eachLimit(t, "back", func(c counter, f facts) {
		w := c.limit.Window
		for _, back := range []time.Duration{time.Microsecond, w / 32, w / 2, w, 3 * w, time.Hour + w/3} {
			c := c.of(back.String())
			time.Sleep(w / 3) // somewhere within a window
			c.useUp()
			lab.step(-back)
			c.usedUpNow(f)
		}
	})
	lab.eachLimit(t, "back, partly used", func(c counter, f facts) {
		c.mustTake(1)
		left := c.peek().Remaining
		lab.step(-c.limit.Window)
		c.wantLeft(left)
		if left > 0 {
			c.mustTake(left)
		}
		c.usedUpNow(f)
	})
	lab.eachLimit(t, "forward and back", func(c counter, f facts) {
		c.useUp()
		lab.step(f.full(c.limit))
		c.useUp()
		lab.step(-f.full(c.limit))
		c.usedUpNow(f)
	})
	lab.refundsAfterSteps(t)
}

// usedUpNow checks that a counter has nothing left, and that no wait is longer than if everything
// had been used just now.
func (c counter) usedUpNow(f facts) {
	c.t.Helper()
	c.wantLeft(0)
	told := c.mustRefuse(1).RetryAfter
	if most := f.full(c.limit); told > most {
		c.t.Errorf("the wait for a permit is %v, want at most %v", told, most)
	}
	all := c.mustRefuse(atOnce(c.limit)).RetryAfter
	if most := f.full(c.limit); all > most {
		c.t.Errorf("the wait for all of it is %v, want at most %v", all, most)
	}
	time.Sleep(told)
	c.mustTake(1)
}
