package outgoing

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// trip takes something from the store. If the caller leaves meanwhile, trip returns the context's error
// at once, and undo runs in the background when take has ended: the store may have granted what nobody
// is going to use. Nothing is sent for a caller who has already left.
func (a *attempt) trip(take func(context.Context), undo func()) error {
	if a.ctx.Done() == nil {
		take(a.ctx)
		return nil
	}
	if err := failure.CallersEnd(a.ctx); err != nil {
		return err
	}
	done := make(chan struct{})
	a.parts.Store.InBackground(func() {
		defer close(done)
		take(context.WithoutCancel(a.ctx))
	})
	select {
	case <-done:
		return nil
	case <-a.ctx.Done():
	}
	a.parts.Store.InBackground(func() {
		<-done
		undo()
	})
	return a.ctx.Err()
}

// undo gives back what was taken for a caller who has left.
func (q *question) undo(a *attempt) {
	if q.slot >= 0 {
		a.hold(q.charge(q.slot)).release()
	}
	if q.turn >= 0 {
		a.parts.Unused.Leave(abandoned.TurnOf(&q.counters[q.turn], &q.verdicts[q.turn]))
	}
}
