package lease

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
)

// maxAge is how long permits are kept at most, in microseconds. After that, a Reset by
// another process takes effect here.
const maxAge = int64(clock.MaxAge / time.Microsecond)

// batch holds the permits that a fetch brought. Times are in nanoseconds of [clock.Expiry.Now].
type batch struct {
	permits    atomic.Int64 // not used yet; negative: retired
	granted    int64        // these permits and the ones that waiting callers got
	verdict    algorithm.Verdict
	expires    int64
	resetAt    int64
	storeAhead int64 // the store's clock minus ours, in microseconds
}

// newBatch returns the permits of a fetch that was sent at a time and has come back now. They
// expire after the time in the store's reply, counted from when it was asked, so no clocks are
// compared.
func (e *lease) newBatch(granted int64, v algorithm.Verdict, sent, now int64) *batch {
	b := &batch{granted: granted, verdict: v, resetAt: now + v.ResetAfter*1000, storeAhead: v.At - now/1000}
	b.expires = clock.Expires(sent, min(maxAge, e.limit.LeaseLife(&b.verdict)))
	b.permits.Store(granted)
	return b
}

// take takes the permits of a call if the batch has not expired. The caller must read the clock
// before, so that the permits are taken no earlier than the store would have charged them.
func (b *batch) take(now, cost int64, v *algorithm.Verdict) bool {
	if now >= b.expires {
		return false
	}
	left, ok := b.subtract(cost)
	if ok {
		b.answer(now, left, cost, v)
	}
	return ok
}

// subtract takes permits, all or none, and returns how many are left. Counting below zero for calls
// of one permit was not faster with two processors.
func (b *batch) subtract(cost int64) (left int64, ok bool) {
	for {
		available := b.permits.Load()
		if available < cost {
			return 0, false
		}
		if b.permits.CompareAndSwap(available, available-cost) {
			return available - cost, true
		}
	}
}

// answer sets v to the verdict on a call that took cost permits and left left permits here.
func (b *batch) answer(now, left, cost int64, v *algorithm.Verdict) {
	*v = algorithm.Verdict{}
	v.At, v.Remaining, v.From = b.storeAhead+now/1000, b.verdict.Remaining+left, algorithm.FromLease
	v.Taken, v.Position, v.ResetAfter = cost, b.verdict.Position, clock.MicrosUntil(b.resetAt, now)
}

// left returns how many permits are left.
func (b *batch) left() int64 { return max(0, b.permits.Load()) }

// retire takes a batch out of use and returns how many permits were left.
func (b *batch) retire() int64 { return max(0, b.permits.Swap(math.MinInt64/2)) }

// charge returns the charge of some of a lease's permits, which is needed to give them back.
func (b *batch) charge(e *lease, permits int64) algorithm.Charge {
	v := &b.verdict
	return algorithm.Charge{Key: e.key, Limit: e.limit, Cost: permits, At: v.At, Position: v.Position}
}
