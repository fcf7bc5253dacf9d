package nearstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// waiter is a caller who waits for a trip. What it is told is written under the lease's lock.
type waiter struct {
	ctx     context.Context
	told    chan struct{} // closed once isTold
	isTold  bool
	verdict algorithm.Verdict
	alone   bool // no trip answers it: it has to ask by itself
	gone    bool // it has left
}

func (w *waiter) tell(v algorithm.Verdict) {
	w.verdict, w.isTold = v, true
	close(w.told)
}

// trip asks the store for several calls of a lease. It is made for all who wait, so it does not end with any of their contexts.
type trip struct {
	ctx     context.Context // of who waits first, without its end
	waiting []*waiter
	early   int // of those who wait, how many did before it was sent
	calls   int64
	id      identity
	over    chan struct{} // closed when it is back
}

// join has somebody wait for the trip under way, or begins one. The lease is locked.
func (l *leases) join(e *lease, w *waiter) bool {
	if e.trip != nil {
		e.trip.waiting = append(e.trip.waiting, w)
		return true
	}
	return l.begin(e, []*waiter{w})
}

// begin sends a trip for those who wait. The lease is locked.
func (l *leases) begin(e *lease, waiting []*waiter) bool {
	if !l.giver.beginTrip(e.key) {
		return false
	}
	l.end(e)
	c := algorithm.Counter{Key: e.key, Limit: e.limit, Cost: e.cost}
	t := &trip{
		ctx: context.WithoutCancel(waiting[0].ctx), waiting: waiting, early: len(waiting), calls: e.calls(int64(len(waiting))),
		over: make(chan struct{}),
	}
	t.id, _ = l.store.refusals.identify(l.store, []algorithm.Counter{c})
	e.trip = t
	go func() {
		defer l.giver.done()
		l.run(e, t, &c)
	}()
	return true
}

// calls is how many calls to ask for: as many as wait, or what is likely to be used. That is twice what was used of the last
// trip; but not more than half of what the store had left, nor than a sub-window's share of all there is, so that idle leases keep
// little from others, and nothing of a small limit. The rule's Lease bounds what is asked for ahead: who waits already keeps
// nothing idle, and would wait for trip after trip.
func (e *lease) calls(waiting int64) int64 {
	return max(1, waiting, min(e.most, 2*e.used, e.left/2/e.cost, e.limit.Max/32/e.cost))
}

// run makes the trip, and answers all who wait for it.
func (l *leases) run(e *lease, t *trip, c *algorithm.Counter) {
	s := l.store
	sent := s.now()
	granted, v := s.Shared.Lease(t.ctx, c, t.calls)
	now := s.now()
	s.learn(t.id, true, []algorithm.Counter{*c}, []algorithm.Verdict{v}, sent)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer close(t.over)
	e.trip = nil
	if granted == 0 {
		for _, w := range t.waiting {
			if !w.gone {
				w.tell(v)
			}
		}
		e.used, e.left, e.idle = 0, v.Remaining, now
		l.giver.wake(now + forgetAfter)
		return
	}
	b := e.newBatch(granted, v, sent, now)
	still := b.serve(t, now)
	e.used, e.left, e.idle = granted, v.Remaining, now
	l.keep(e, b, now)
	if len(still) > 0 {
		l.again(e, still)
	}
}

// serve gives each who waits a call, in the order in which they came, and returns who got none. Who came when the trip was under
// way may have come after the charge, so for them it counts only while the batch lives.
func (b *batch) serve(t *trip, now int64) (still []*waiter) {
	for i, w := range t.waiting {
		switch rest := b.calls.Load() - 1; {
		case w.gone:
		case rest < 0 || i >= t.early && now >= b.ends:
			still = append(still, w)
		default:
			b.calls.Store(rest)
			v := b.answer(now, rest)
			if i == 0 {
				v.From = algorithm.FromStore
			}
			w.tell(v)
		}
	}
	return still
}

// keep puts what is left of a trip where callers find it; or has it given back, when they cannot use it any more.
func (l *leases) keep(e *lease, b *batch, now int64) {
	if b.calls.Load() <= 0 {
		l.giver.wake(now + forgetAfter)
		return
	}
	e.batch.Store(b)
	if e.dropped || now >= b.ends || l.giver.isStopped() {
		l.end(e)
		return
	}
	l.giver.wake(b.ends)
}

// again goes on for those who got nothing: on the trip that others have begun meanwhile, or on another.
func (l *leases) again(e *lease, still []*waiter) {
	if e.trip != nil {
		e.trip.waiting = append(e.trip.waiting, still...)
		return
	}
	if !e.dropped && l.begin(e, still) {
		return
	}
	for _, w := range still {
		w.alone = true
		w.tell(algorithm.Verdict{})
	}
}
