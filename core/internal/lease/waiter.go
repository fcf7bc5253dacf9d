package lease

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// waiter is a caller who waits for a fetch. It is answered under the lease's lock.
type waiter struct {
	ctx       context.Context
	cost      int64
	answered  chan struct{} // closed when there is an answer
	verdict   algorithm.Verdict
	askStore  bool // no fetch answers it, so it must ask the store itself
	abandoned bool // it no longer waits
}

func (w *waiter) answer(v algorithm.Verdict) {
	w.verdict = v
	close(w.answered)
}

// wait waits for the answer, the end of the caller's context, or the timeout.
func (l *Leases) wait(e *lease, w *waiter) algorithm.Verdict {
	err := l.await(w.ctx, w.answered)
	if err == nil {
		return w.verdict
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-w.answered: // it was answered meanwhile
		return w.verdict
	default:
	}
	w.abandoned = true
	if ended := failure.CallersEnd(w.ctx); ended != nil {
		return algorithm.Verdict{Ended: ended}
	}
	return algorithm.Verdict{Err: err}
}

// serve gives the waiting callers their permits, in the order in which they came, and returns those
// who got none. Any other order could starve a caller of a small lease. A caller who came during
// the fetch may have come after the charge, and gets permits only if the batch has not expired.
func (b *batch) serve(f *fetch, now int64) (unserved []*waiter) {
	for i, w := range f.waiting {
		switch left := b.permits.Load() - w.cost; {
		case w.abandoned:
		case left < 0 || i >= f.waitingAtSend && now >= b.expires:
			unserved = append(unserved, w)
		default:
			b.permits.Store(left)
			var v algorithm.Verdict
			b.answer(now, left, w.cost, &v)
			if i == 0 {
				v.From = algorithm.FromStore
			}
			w.answer(v)
		}
	}
	return unserved
}

// refuse answers the callers of a fetch that brought nothing, with permits that are left here or
// with the fetch's answer, which is for one permit. A caller who needs more asks the store itself.
func (e *lease) refuse(f *fetch, v *algorithm.Verdict, now int64) {
	b := e.batch.Load()
	for _, w := range f.waiting {
		var taken algorithm.Verdict
		switch {
		case w.abandoned:
		case b != nil && b.take(now, w.cost, &taken):
			w.answer(taken)
		case w.cost == 1 || v.Err != nil || v.Ended != nil:
			w.answer(*v)
		default:
			leaveToStore([]*waiter{w})
		}
	}
}

// leaveToStore makes callers ask the store themselves.
func leaveToStore(waiting []*waiter) {
	for _, w := range waiting {
		w.askStore = true
		w.answer(algorithm.Verdict{})
	}
}
