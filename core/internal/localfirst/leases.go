package localfirst

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

const (
	// leaseSets bounds how many counters are leased at once: 4,096, or a few less where they share a set. Those beyond ask
	// each time.
	leaseSets = 512
	// longestLease is for how long permits are kept at most, in microseconds: a Reset elsewhere is seen then.
	longestLease = 1_000_000
)

// leases are the counters of which this process takes several permits in one trip.
type leases struct {
	store   *Store
	timeout time.Duration
	table   table[lease]
	giver   giver
}

func (l *leases) init(s *Store, timeout time.Duration) {
	l.store, l.timeout, l.table = s, timeout, newTable[lease](leaseSets)
	l.giver.init(l)
}

// lease holds the leased permits of one counter, whatever calls cost. Callers may choose the cost,
// so the number of idle permits is bounded for the counter.
type lease struct {
	key   []byte
	limit *algorithm.Limit
	batch atomic.Pointer[batch] // what is there to be spent; nil: nothing

	mu      sync.Mutex
	most    int64 // permits that one trip may bring ahead
	trip    *trip // under way; who wants a permit waits for it
	used    int64 // permits that were used of what the last trip brought
	left    int64 // permits that the store had left then
	idle    int64 // when it was last used up, or ended
	dropped bool  // it has lost its place, and nobody finds it any more
}

// leasable says whether a counter's permits may be taken ahead.
func leasable(c *algorithm.Counter) bool {
	return c.Lease > 0 && c.Cost > 0 && !c.Dry && c.Limit.Leasable()
}

// of says whether this is the lease of a counter.
func (e *lease) of(c *algorithm.Counter) bool {
	return string(e.key) == string(c.Key) && e.limit.Equal(c.Limit)
}

// batch is what one trip brought, but for what those who waited for it got. Times are nanoseconds of Store.now.
type batch struct {
	permits atomic.Int64 // not spent yet; below zero: spent, or taken out of use
	granted int64        // permits, of the whole trip
	verdict algorithm.Verdict
	ends    int64 // it is spent before this
	reset   int64
	began   int64 // when the store's clock stood at zero, in microseconds
}

// newBatch is what a trip brought that was sent at a time and has just come back.
func (e *lease) newBatch(granted int64, v algorithm.Verdict, sent, now int64) *batch {
	b := &batch{granted: granted, verdict: v, reset: now + v.ResetAfter*1000, began: v.At - now/1000}
	b.ends = surely(sent, min(longestLease, e.limit.LeaseLife(&v)))
	b.permits.Store(granted)
	return b
}

// spend takes the cost of a call out of a batch, if it is still alive. The clock is read first:
// what is taken after that is taken as late as an answer of the store's would be.
func (b *batch) spend(now, cost int64, v *algorithm.Verdict) bool {
	if now >= b.ends {
		return false
	}
	rest, ok := b.take(cost)
	if ok {
		*v = b.answer(now, rest)
	}
	return ok
}

// take takes permits, all or none, and returns how many are left. Taking one permit is faster: if
// none is left, counting below zero does no harm.
func (b *batch) take(cost int64) (rest int64, ok bool) {
	for {
		there := b.permits.Load()
		switch {
		case there < cost:
			return 0, false
		case cost == 1:
			rest = b.permits.Add(-1)
			return rest, rest >= 0
		case b.permits.CompareAndSwap(there, there-cost):
			return there - cost, true
		}
	}
}

// answer returns the verdict on a call after which so many permits are left here.
func (b *batch) answer(now, rest int64) algorithm.Verdict {
	return algorithm.Verdict{
		At: b.began + now/1000, Remaining: b.verdict.Remaining + rest, ResetAfter: left(b.reset, now), From: algorithm.FromLease,
	}
}

// rest returns how many permits are left.
func (b *batch) rest() int64 { return max(0, b.permits.Load()) }

// retire takes a batch out of use and returns how many permits were not spent.
func (b *batch) retire() int64 { return max(0, b.permits.Swap(math.MinInt64/2)) }

// spend takes a permit that is here.
func (l *leases) spend(c *algorithm.Counter, v *algorithm.Verdict) bool {
	hash := l.store.hash(c.Key)
	in := l.table.set(hash)
	if in == nil {
		return false
	}
	e := in.find(hash, func(e *lease) bool { return e.of(c) })
	if e == nil {
		return false
	}
	b := e.batch.Load()
	return b != nil && b.spend(l.store.now(), c.Cost, v)
}

// decide fetches permits, or waits for those that somebody else is fetching. It says whether there is an answer; if not, the
// call asks by itself.
func (l *leases) decide(ctx context.Context, c *algorithm.Counter, v *algorithm.Verdict) bool {
	if *v = (algorithm.Verdict{Ended: failure.CallersEnd(ctx)}); v.Ended != nil {
		return true
	}
	e := l.lease(c)
	if e == nil {
		return false
	}
	w := &waiter{ctx: ctx, cost: c.Cost, told: make(chan struct{})}
	e.mu.Lock()
	e.most = min(c.Lease, c.Limit.Max/c.Cost) * c.Cost
	if b := e.batch.Load(); b != nil && b.spend(l.store.now(), c.Cost, v) {
		e.mu.Unlock()
		return true
	}
	joins := !e.dropped && l.join(e, w)
	e.mu.Unlock()
	if !joins {
		return false
	}
	*v = l.wait(e, w)
	return !w.alone
}

// wait returns when the trip is over, the caller's context has ended, or the store has had its time.
func (l *leases) wait(e *lease, w *waiter) algorithm.Verdict {
	patience := time.NewTimer(l.timeout)
	defer patience.Stop()
	select {
	case <-w.told:
		return w.verdict
	case <-w.ctx.Done():
	case <-patience.C:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.isTold {
		return w.verdict
	}
	w.gone = true
	if ended := failure.CallersEnd(w.ctx); ended != nil {
		return algorithm.Verdict{Ended: ended}
	}
	return algorithm.Verdict{Err: l.noAnswer()}
}

// lease is that of a counter, made when it is new; nil when there is no place for it.
func (l *leases) lease(c *algorithm.Counter) *lease {
	hash := l.store.hash(c.Key)
	in := l.table.setToWrite(hash)
	meant := func(e *lease) bool { return e.of(c) }
	if e := in.find(hash, meant); e != nil {
		return e
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if e := in.find(hash, meant); e != nil {
		return e
	}
	e := &lease{key: append([]byte(nil), c.Key...), limit: c.Limit}
	gone, ok := in.put(hash, e, func(old *lease, _ bool) int64 { return old.worth() })
	if !ok {
		return nil
	}
	if gone != nil {
		gone.mu.Lock()
		gone.dropped = true
		l.end(gone)
		gone.mu.Unlock()
	}
	return e
}

// worth is what a lease's place is worth: what was used of it last, or all when it is in use.
func (e *lease) worth() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.batch.Load(); e.trip != nil || b != nil && b.rest() > 0 {
		return keep
	}
	return e.used
}

// end takes what is here out of use, and has the rest given back. The lease is locked.
func (l *leases) end(e *lease) {
	b := e.batch.Swap(nil)
	if b == nil {
		return
	}
	rest := b.retire()
	e.used, e.idle = b.granted-rest, l.store.now()
	l.giver.add(e, b, rest)
}

// reset runs a function that resets a key, when no trip for the key is under way and nothing of it
// is being given back. So all charges made before are forgotten with the rest. Leased permits are
// dropped, and not given back.
func (l *leases) reset(ctx context.Context, key []byte, reset func() error) error {
	l.giver.beginReset(key)
	defer l.giver.endReset(key)
	for _, e := range l.of(key) {
		e.mu.Lock()
		t := e.trip
		e.mu.Unlock()
		if t != nil {
			if err := l.await(ctx, t.over); err != nil {
				return err
			}
		}
		e.mu.Lock()
		if b := e.batch.Swap(nil); b != nil {
			b.retire()
		}
		e.mu.Unlock()
	}
	for _, back := range l.giver.forget(key) {
		if err := l.await(ctx, back); err != nil {
			return err
		}
	}
	return reset()
}

// of returns the leases of a key.
func (l *leases) of(key []byte) (all []*lease) {
	if in := l.table.set(l.store.hash(key)); in != nil {
		for e := range in.all {
			if string(e.key) == string(key) {
				all = append(all, e)
			}
		}
	}
	return all
}

// await returns when something is over, or with an error when the time for it has passed.
func (l *leases) await(ctx context.Context, over <-chan struct{}) error {
	patience := time.NewTimer(l.timeout)
	defer patience.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return l.noAnswer()
	}
}

func (l *leases) noAnswer() error {
	return failure.NoAnswer(failure.Timeout, l.timeout, errors.New("a trip for several calls is not back"))
}

// close gives everything back, and waits for that as long as a call may take.
func (l *leases) close() {
	l.giver.stop()
	l.table.each(func(in *set[lease]) {
		for e := range in.all {
			e.mu.Lock()
			l.end(e)
			e.mu.Unlock()
		}
	})
	l.giver.finish(l.timeout)
}
