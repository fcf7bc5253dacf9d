package lease

import (
	"context"
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// fetch asks the store for permits of a lease. It serves all callers who wait for it, so it does
// not end with the context of any of them. A lease has at most one fetch under way.
type fetch struct {
	ctx           context.Context // with the values of the first caller's context
	op            algorithm.Op    // on the counter, whose calls are of one permit
	counter       [1]algorithm.Counter
	verdict       [1]algorithm.Verdict
	waiting       []*waiter
	waitingAtSend int           // how many callers waited when it was sent
	done          chan struct{} // closed when it has come back; nil if nobody waits for that
}

// Fetch answers a call with permits from a new fetch, or from the fetch under way. It reports
// whether there is an answer; otherwise the call must ask the store itself.
func (l *Leases) Fetch(ctx context.Context, c *algorithm.Counter, v *algorithm.Verdict) bool {
	if *v = (algorithm.Verdict{Ended: failure.CallersEnd(ctx)}); v.Ended != nil {
		return true
	}
	e := l.findOrCreate(c)
	if e == nil {
		return false
	}
	w := &waiter{ctx: ctx, cost: c.Cost, answered: make(chan struct{})}
	e.mu.Lock()
	e.maxAhead = min(c.Lease, c.Limit.Max/c.Cost) * c.Cost
	if b := e.batch.Load(); b != nil && b.take(l.clock.Now(), c.Cost, v) {
		e.mu.Unlock()
		return true
	}
	waits := !e.evicted && l.join(e, []*waiter{w})
	e.mu.Unlock()
	if !waits {
		return false
	}
	*v = l.wait(e, w)
	return !w.askStore
}

// join makes callers wait for the fetch under way, or begins one. It reports whether there is a
// fetch. The lease must be locked.
func (l *Leases) join(e *lease, callers []*waiter) bool {
	if e.fetch == nil {
		return l.begin(e, callers)
	}
	e.fetch.waiting = append(e.fetch.waiting, callers...)
	return true
}

// begin sends a fetch for waiting callers. Meanwhile, callers who need fewer permits can use those
// that are left here. It reports whether the fetch began. The lease must be locked.
func (l *Leases) begin(e *lease, waiting []*waiter) bool {
	if !l.tasks.begin(e.key) {
		return false
	}
	if b := e.batch.Load(); b != nil {
		if l.clock.Now() >= b.expires {
			l.end(e)
		} else {
			e.used = b.granted - b.left()
		}
	}
	e.fetch = &fetch{
		ctx: context.WithoutCancel(waiting[0].ctx), counter: [1]algorithm.Counter{{Key: e.key, Limit: e.limit, Cost: 1}},
		waiting: waiting, waitingAtSend: len(waiting),
	}
	f := e.fetch
	f.op = algorithm.Op{Mode: algorithm.AllOrNone, Counters: f.counter[:], Verdicts: f.verdict[:], Calls: e.wanted(waiting)}
	go panics.Guard(func() { l.run(e, f) }, func(err error) { l.abort(e, f, err) })()
	return true
}

// abort ends a fetch that panicked, and answers its callers.
func (l *Leases) abort(e *lease, f *fetch, err error) {
	l.source.Panicked(err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fetch != f {
		return
	}
	e.fetch = nil
	if f.done != nil {
		close(f.done)
	}
	e.refuse(f, &algorithm.Verdict{Err: &failure.Error{Class: failure.Unexpected, Err: err}}, l.clock.Now())
}

// wanted returns how many permits to ask for: as many as the waiting callers need or, if that is
// more, as many as will probably be used. The estimate is twice what was used of the last fetch,
// but at most half of what the store had left, and at most a sub-window's share of the limit. So
// idle leases withhold little from others, and nothing of a small limit. The rule's Lease bounds
// what is fetched ahead, but not what callers already wait for, because that is never idle and they
// would otherwise wait for several fetches.
func (e *lease) wanted(waiting []*waiter) (needed int64) {
	for _, w := range waiting {
		needed += w.cost
	}
	return max(needed, min(e.maxAhead, 2*e.used, e.remaining/2, e.limit.Max/32))
}

// run asks the store, and answers all callers who wait.
func (l *Leases) run(e *lease, f *fetch) {
	defer l.finishTask()
	sent := l.clock.Now()
	l.source.Do(f.ctx, &f.op)
	granted, v := f.op.Passed, f.verdict[0]
	now := l.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fetch = nil
	if f.done != nil {
		defer close(f.done)
	}
	if granted == 0 {
		e.refuse(f, &v, now)
		e.used, e.remaining, e.idleSince = 0, v.Remaining, now
		l.wake(now + forgetAfter)
		return
	}
	b := e.newBatch(granted, v, sent, now)
	l.merge(e, b, now)
	unserved := b.serve(f, now)
	e.used, e.remaining, e.idleSince = granted, v.Remaining, now
	l.keep(e, b, now)
	switch {
	case len(unserved) == 0:
	// The store has no more, or no further fetch may begin.
	case granted < f.op.Calls || e.evicted || !l.join(e, unserved):
		leaveToStore(unserved)
	}
}

// merge adds the lease's remaining permits to a new batch, or gives them back if they cannot be
// used together with it.
func (l *Leases) merge(e *lease, b *batch, now int64) {
	old := e.batch.Load()
	if old == nil {
		return
	}
	if now >= old.expires || now >= b.expires || !e.limit.LeasedTogether(&old.verdict, &b.verdict) {
		l.end(e)
		return
	}
	e.batch.Store(nil)
	left := old.retire()
	b.granted += left
	b.permits.Add(left)
	b.expires = min(b.expires, old.expires)
}

// keep makes the remaining permits of a fetch available to callers, or gives them back if no call
// can find them.
func (l *Leases) keep(e *lease, b *batch, now int64) {
	if b.left() == 0 {
		l.wake(now + forgetAfter)
		return
	}
	e.batch.Store(b)
	if e.evicted || l.tasks.isStopped() {
		l.end(e)
		return
	}
	l.wake(b.expires)
}

// await returns when a request has come back, or with an error when its time is over.
func (l *Leases) await(ctx context.Context, done <-chan struct{}) error {
	timer := l.startTimer()
	defer l.stopTimer(timer)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return failure.NoAnswer(failure.Timeout, l.timeout, errUnderWay)
	}
}

// startTimer returns a timer for the timeout. A new timer takes three allocations, so timers are
// reused (BenchmarkLeaseFetch).
func (l *Leases) startTimer() *time.Timer {
	if t, ok := l.timers.Get().(*time.Timer); ok {
		t.Reset(l.timeout)
		return t
	}
	return time.NewTimer(l.timeout)
}

func (l *Leases) stopTimer(t *time.Timer) {
	if t.Stop() { // a timer that fired is rare, and is dropped
		l.timers.Put(t)
	}
}

var errUnderWay = errors.New("a request for the permits of several calls has not come back")
