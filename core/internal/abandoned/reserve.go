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

// Do takes a turn. If the context ends, Do returns at once, and gives back what the store grants.
func (t *Turns) Do(ctx context.Context, op *algorithm.Op) {
	own := algorithm.NewOp(op.Mode, clone(&op.Counters[0])) // the caller may leave, and use op again
	own.Patience = op.Patience
	take := func() { t.store.Do(ctx, own) }
	undo := func() { t.Leave(TurnOf(&own.Counters[0], &own.Verdicts[0])) }
	if ended := t.Ask(ctx, take, undo); ended != nil {
		op.Verdicts[0] = algorithm.Verdict{Ended: ended}
		return
	}
	op.Verdicts[0] = own.Verdicts[0]
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
