package promise

import (
	"context"
	"sync/atomic"
	"testing"
)

// ExactUnderConcurrency: however many goroutines and clients use one counter at once, exactly the
// available permits are granted. Whatever each call costs, the granted permits and those that are
// left add up to the total.
func ExactUnderConcurrency(t *testing.T, e Engine) {
	eachAlgorithm(t, func(t *testing.T, f facts) {
		limiters := e.limiters(t, 3)
		limit := f.lasting(1000)
		ask := func(goroutine int, subject string, n int) bool {
			c := counter{t: t, limiter: limiters[goroutine%3], name: "name", subject: subject, limit: limit}
			d, err := c.limiter.MustCounter(c.name, c.limit).AllowN(context.Background(), c.subject, n)
			if err != nil {
				t.Error(err) // not Fatal, because this is not the test's goroutine
			}
			return d.Allowed
		}
		var singles, permits atomic.Int64
		together(96, func(goroutine int) {
			for i := range 12 {
				if ask(goroutine, "one each", 1) {
					singles.Add(1)
				}
				n := 1 + (goroutine+i)%4
				if ask(goroutine, "some more", n) {
					permits.Add(int64(n))
				}
			}
		})
		c := counter{t: t, limiter: limiters[0], name: "name", limit: limit}
		if n := singles.Load(); n != 1000 {
			t.Errorf("%d of 1000 permits passed", n)
		}
		c.of("one each").wantLeft(0)
		if n := permits.Load(); n > 1000 {
			t.Errorf("%d of 1000 permits passed, of calls of different cost", n)
		}
		c.of("some more").wantLeft(1000 - int(permits.Load()))
	})
}
