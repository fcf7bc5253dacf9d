package localfirst

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// waiter is a caller who waits for a trip. What it is told is written under the lease's lock.
type waiter struct {
	ctx     context.Context
	cost    int64
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

// trip asks the store for several permits of a lease. It is made for all who wait, so it does not
// end with any of their contexts.
type trip struct {
	ctx     context.Context // of who waits first, without its end
	waiting []*waiter
	early   int // of those who wait, how many did before it was sent
	permits int64
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

// begin sends a trip for the waiting callers. Permits that are left here stay in use meanwhile, for
// callers who need fewer. The lease must be locked. It reports whether the trip began.
func (l *leases) begin(e *lease, waiting []*waiter) bool {
	if !l.giver.beginTrip(e.key) {
		return false
	}
	if b := e.batch.Load(); b != nil {
		if l.store.now() >= b.ends {
			l.end(e)
		} else {
			e.used = b.granted - b.rest()
		}
	}
	c := algorithm.Counter{Key: e.key, Limit: e.limit, Cost: 1}
	t := &trip{
		ctx: context.WithoutCancel(waiting[0].ctx), waiting: waiting, early: len(waiting), permits: e.permits(waiting),
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

// permits returns how many permits to ask for: as many as the waiting callers need, or as are
// likely to be used. The latter is twice what was used of the last trip, but not more than half of
// what the store had left, nor than a sub-window's share of the limit. So idle leases keep little
// from others, and nothing of a small limit. The rule's Lease bounds what is asked for ahead, but
// not what callers already wait for: that is never idle, and they would wait for trip after trip.
func (e *lease) permits(waiting []*waiter) (needed int64) {
	for _, w := range waiting {
		needed += w.cost
	}
	return max(needed, min(e.most, 2*e.used, e.left/2, e.limit.Max/32))
}

// run makes the trip, and answers all who wait for it.
func (l *leases) run(e *lease, t *trip, c *algorithm.Counter) {
	s := l.store
	sent := s.now()
	granted, v := s.Shared.Lease(t.ctx, c, t.permits)
	now := s.now()
	s.learn(t.id, true, []algorithm.Counter{*c}, []algorithm.Verdict{v}, sent)
	e.mu.Lock()
	defer e.mu.Unlock()
	defer close(t.over)
	e.trip = nil
	if granted == 0 {
		e.refused(t, &v, now)
		e.used, e.left, e.idle = 0, v.Remaining, now
		l.giver.wake(now + forgetAfter)
		return
	}
	b := e.newBatch(granted, v, sent, now)
	l.takeOver(e, b, now)
	still := b.serve(t, now)
	e.used, e.left, e.idle = granted, v.Remaining, now
	l.keep(e, b, now)
	if granted < t.permits { // the store has no more
		alone(still)
	} else if len(still) > 0 {
		l.again(e, still)
	}
}

// takeOver adds what is left of the last batch to a new one, or gives it back if it cannot be used
// together with that.
func (l *leases) takeOver(e *lease, b *batch, now int64) {
	old := e.batch.Load()
	if old == nil {
		return
	}
	if now >= old.ends || now >= b.ends || !e.limit.LeasedTogether(&old.verdict, &b.verdict) {
		l.end(e)
		return
	}
	e.batch.Store(nil)
	rest := old.retire()
	b.granted += rest
	b.permits.Add(rest)
	b.ends = min(b.ends, old.ends)
}

// refused answers the callers of a trip that brought nothing: with permits that are left here, or
// with the trip's answer, which is for one permit. A caller who needs more asks alone.
func (e *lease) refused(t *trip, v *algorithm.Verdict, now int64) {
	b := e.batch.Load()
	for _, w := range t.waiting {
		var spent algorithm.Verdict
		switch {
		case w.gone:
		case b != nil && b.spend(now, w.cost, &spent):
			w.tell(spent)
		case w.cost == 1 || v.Err != nil || v.Ended != nil:
			w.tell(*v)
		default:
			alone([]*waiter{w})
		}
	}
}

// serve gives the waiting callers their permits, in the order in which they came, and returns those
// who got none. A caller who came during the trip may have come after the charge, and gets permits
// only while the batch lives.
func (b *batch) serve(t *trip, now int64) (still []*waiter) {
	for i, w := range t.waiting {
		switch rest := b.permits.Load() - w.cost; {
		case w.gone:
		case rest < 0 || i >= t.early && now >= b.ends:
			still = append(still, w)
		default:
			b.permits.Store(rest)
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
	if b.rest() == 0 {
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
	alone(still)
}

// alone makes callers ask the store by themselves.
func alone(waiting []*waiter) {
	for _, w := range waiting {
		w.alone = true
		w.tell(algorithm.Verdict{})
	}
}
