package abandoned

import (
	"bytes"
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// TurnOf returns the turn that a verdict grants. Its Cost is 0 if it grants none.
func TurnOf(c *algorithm.Counter, v *algorithm.Verdict) Turn {
	return Turn{Charge: c.Charged(v), Counts: time.Duration(v.ResetAfter) * time.Microsecond}
}

// Reserve takes a turn at a bucket, if it comes within patience, in microseconds. If the context
// ends, Reserve returns at once, and gives back what the store grants.
func (t *Turns) Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict {
	if ctx.Done() == nil {
		return t.store.Reserve(ctx, c, patience)
	}
	if ended := failure.CallersEnd(ctx); ended != nil {
		return algorithm.Verdict{Ended: ended}
	}
	own, done := clone(c), make(chan struct{}) // the caller may leave, and use c again
	var v algorithm.Verdict
	t.background(func() {
		defer close(done)
		v = t.store.Reserve(ctx, &own, patience)
	})
	select {
	case <-done:
		apply(c, &own)
		return v
	case <-ctx.Done():
		t.background(func() {
			<-done
			t.Leave(TurnOf(&own, &v))
		})
		return algorithm.Verdict{Ended: ctx.Err()}
	}
}

// clone returns a copy of a counter that stays valid after the call.
func clone(c *algorithm.Counter) (own algorithm.Counter) {
	own = *c
	own.Key = bytes.Clone(c.Key)
	if c.Override != nil {
		override := *c.Override
		override.Key = bytes.Clone(override.Key)
		own.Override = &override
	}
	return own
}

// apply writes into c what the store has found out about its copy.
func apply(c, own *algorithm.Counter) {
	c.Limit = own.Limit
	if c.Override != nil {
		key := c.Override.Key
		*c.Override = *own.Override
		c.Override.Key = key
	}
}
