package limittest

import (
	"maps"
	"testing"
	"time"
)

// RefusedChangesNothing: who is refused, however often and at whatever cost, waits no longer for it and changes no byte in
// any server. Neither does who only looks.
func RefusedChangesNothing(t *testing.T, e Engine) {
	lab := e.newLab(t)
	lab.eachLimit(t, "hammering", func(c counter, _ facts) {
		calm := c.of("calm")
		for _, each := range []counter{c, calm} {
			each.useUp()
		}
		told := c.mustRefuse(1).RetryAfter
		passes := time.Now().Add(told)
		calm.sameAs(c, "after one refusal")
		before := lab.keys(c.t, c.prefix)
		for i := range 20 {
			time.Sleep(told / 24)
			c.limiter = c.another() // who knows of no refusal yet asks the servers
			c.mustRefuse(1 + i%min(3, atOnce(c.limit)))
			c.mustRefuse(atOnce(c.limit))
			c.peek()
		}
		if after := lab.keys(c.t, c.prefix); !maps.Equal(before, after) {
			c.t.Errorf("refused calls changed what the servers hold:\n%v, and before them\n%v", after, before)
		}
		c.sameAs(calm, "after many refusals")
		time.Sleep(time.Until(passes))
		c.mustTake(1)
	})
}

// useUp takes all there is: half of it now and half a little later, so that it does not come back all at once. No time
// passes for a limit that gives some of it back so soon.
func (c counter) useUp() {
	c.t.Helper()
	half := atOnce(c.limit) / 2
	c.mustTake(half)
	c.mustTake(atOnce(c.limit) - half)
}
