package core

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// newHolder returns a name that no other holder has, in any process: a random number of this
// limiter and a number of the holder.
func (l *Limiter) newHolder() string {
	return l.holderPrefix + strconv.FormatUint(l.holders.Add(1), 36)
}

func newHolderPrefix() string { return strconv.FormatUint(rand.Uint64(), 36) + "-" }

// dropDoubtfulSlots gives back the slots that the store may or may not have taken, because its
// answer did not come in time. Otherwise callers with short deadlines of their own could fill all
// slots for a window each. It leaves slots that were taken in this process instead.
func (l *Limiter) dropDoubtfulSlots(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	var slots []algorithm.Charge
	for i := range counters {
		counter, v := &counters[i], &verdicts[i]
		err := v.Failure()
		doubtful := v.Ended != nil || err != nil && failure.ClassOf(err).MayHaveCharged()
		if counter.Limit.Properties().Slots && doubtful {
			slots = append(slots, algorithm.Charge{Key: slices.Clone(counter.Key), Limit: counter.Limit, Mark: counter.Mark})
		}
	}
	l.slotRetries.Add(slots, 2)
}

// hold holds the slots of one call in flight. It renews them until they are released.
type hold struct {
	limiter *Limiter
	slots   []algorithm.Charge
	every   time.Duration

	mu       sync.Mutex
	released bool
	timer    *time.Timer
}

// hold begins to renew slots that were taken.
func (l *Limiter) hold(slots []algorithm.Charge) *hold {
	h := &hold{limiter: l, slots: slots, every: micros(slots[0].Limit.Window / 3)}
	for _, slot := range slots[1:] {
		h.every = min(h.every, micros(slot.Limit.Window/3))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(h.every, panics.Guard(h.renew, l.operatorLog.Panicked))
	return h
}

// renew keeps the lock while the store is asked, so that no slot is renewed after it was released.
// A failed attempt is repeated soon: until a whole window has passed, the slot is still held.
func (h *hold) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released || h.limiter.closed.Load() {
		return
	}
	next := h.every
	defer func() { h.timer.Reset(next) }() // also after a panic
	if err := h.limiter.store.Renew(context.Background(), h.slots); err != nil {
		h.limiter.failures.Add(err)
		h.limiter.operatorLog.RenewalFailed(err)
		next /= 4
	}
}

// stop ends the renewing, and reports whether this was the first call.
func (h *hold) stop() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		return false
	}
	h.released = true
	h.timer.Stop()
	return true
}

func (h *hold) release() {
	if h.stop() {
		h.limiter.giveBack(context.Background(), h.slots)
	}
}
