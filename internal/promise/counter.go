package promise

import (
	"context"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// counter is one counter. Its methods end the test if the limiter returns an error.
type counter struct {
	t             testing.TB
	limiter       *core.Limiter
	prefix        string
	name, subject string
	limit         core.Limit
	another       func() *core.Limiter // returns a limiter of another process; nil outside of lab.eachLimit
}

// take asks for n permits.
func (c counter) take(n int) core.Decision {
	c.t.Helper()
	d, err := c.limiter.MustCounter(c.name, c.limit).AllowN(context.Background(), c.subject, n)
	if err != nil {
		c.t.Fatalf("AllowN(%q, %q, %v, %d): %v", c.name, c.subject, c.limit, n, err)
	}
	return d
}

// mustTake takes n permits and fails the test if they are refused.
func (c counter) mustTake(n int) core.Decision {
	c.t.Helper()
	d := c.take(n)
	if !d.Allowed {
		c.t.Fatalf("%d of %v are refused: %+v", n, c.limit, d)
	}
	return d
}

// mustRefuse asks for n permits and fails the test if they are granted.
func (c counter) mustRefuse(n int) core.Decision {
	c.t.Helper()
	d := c.take(n)
	if d.Allowed || d.Reason != core.LimitExceeded || d.RetryAfter <= 0 {
		c.t.Fatalf("%d of %v are not refused: %+v", n, c.limit, d)
	}
	return d
}

func (c counter) peek() core.Decision {
	c.t.Helper()
	d, err := c.look()
	if err != nil {
		c.t.Fatalf("Peek(%q, %q, %v): %v", c.name, c.subject, c.limit, err)
	}
	return d
}

func (c counter) look() (core.Decision, error) {
	if c.limit.Algorithm == core.Concurrency {
		return c.limiter.MustSlots(c.name, c.limit.Max).LostAfter(c.limit.Window).Peek(context.Background(), c.subject)
	}
	return c.limiter.MustCounter(c.name, c.limit).Peek(context.Background(), c.subject)
}

// wantLeft checks how many permits are left.
func (c counter) wantLeft(n int) {
	c.t.Helper()
	if d := c.peek(); d.Remaining != n {
		c.t.Errorf("%q of %q by %v: %d left, want %d", c.name, c.subject, c.limit, d.Remaining, n)
	}
}

// by returns the counter as seen by a process with another limit for it.
func (c counter) by(limit core.Limit) counter {
	c.limit = limit
	return c
}

// of returns the counter of another subject.
func (c counter) of(subject string) counter {
	c.subject = subject
	return c
}

// sameAs checks that two counters are in the same state.
func (c counter) sameAs(other counter, when string) {
	c.t.Helper()
	d := other.peek()
	d.Key = c.subject
	if err := sameDecision(c.peek(), d); err != nil {
		c.t.Errorf("%s: %v", when, err)
	}
}
