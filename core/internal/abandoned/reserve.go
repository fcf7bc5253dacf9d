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
	own := clone(c) // the caller may leave, and use c again
	var v algorithm.Verdict
	reserve := func() { v = t.store.Reserve(ctx, &own, patience) }
	if ended := t.Ask(ctx, reserve, func() { t.Leave(TurnOf(&own, &v)) }); ended != nil {
		return algorithm.Verdict{Ended: ended}
	}
	return v
}

// Ask calls ask, which asks the store for something. If the context ends meanwhile, Ask returns its
// error at once, and undo runs in the background when ask has returned: the store may have granted
// what nobody is going to use. Nothing is asked for a caller who has already left.
func (t *Turns) Ask(ctx context.Context, ask, undo func()) (ended error) {
	if ctx.Done() == nil {
		ask()
		return nil
	}
	if ended := failure.CallersEnd(ctx); ended != nil {
		return ended
	}
	done := make(chan struct{})
	t.background(func() {
		defer close(done)
		ask()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	t.background(func() {
		<-done
		undo()
	})
	return ctx.Err()
}

// clone returns a copy of a counter that stays valid after the call.
func clone(c *algorithm.Counter) (own algorithm.Counter) {
	own = *c
	own.Key = bytes.Clone(c.Key)
	return own
}
