package inflight

import (
	"context"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Hold holds the slots of one call in flight. It renews them until they are released.
type Hold struct {
	keeper *Keeper
	slots  []algorithm.Charge
	every  time.Duration

	mu       sync.Mutex
	released bool
	timer    *time.Timer
	// giveBacks is how often the slots are to be given back once more after they were released,
	// because of renewals without an answer since the last one that had an answer.
	giveBacks int
}

// Hold begins to renew slots that were taken: one or more.
func (k *Keeper) Hold(slots []algorithm.Charge) *Hold {
	h := &Hold{keeper: k, slots: slots, every: third(slots[0].Limit)}
	for _, slot := range slots[1:] {
		h.every = min(h.every, third(slot.Limit))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(h.every, panics.Guard(h.renew, k.log.Panicked))
	return h
}

// third returns a third of the time after which a slot is free if nobody renews it. Renewing takes
// a lost slot again, so after a failover the counts are correct again within this time.
func third(limit *algorithm.Limit) time.Duration {
	return time.Duration(limit.Window/3) * time.Microsecond
}

// renew keeps the lock while it asks the store, so that no slot is renewed after it was released.
// It repeats a failed attempt soon, because the slot is held until a whole window has passed.
func (h *Hold) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released || h.keeper.closed.Load() {
		return
	}
	next := h.every
	defer func() { h.timer.Reset(next) }() // also after a panic
	err := h.keeper.store.Change(context.Background(), &algorithm.Change{Kind: algorithm.Renews, Charges: h.slots})
	if err == nil {
		h.giveBacks = 0
	} else {
		h.giveBacks = max(h.giveBacks, giveBacksAfterError(err))
		h.keeper.failures.Add(err)
		h.keeper.log.RenewalFailed(err)
		next /= 4
	}
}

// stop ends the renewing, and reports whether this was the first call. If a renewal may still reach the
// store, and take the slots after they were given back, they are given back again.
func (h *Hold) stop() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		return false
	}
	h.released = true
	h.timer.Stop()
	for _, slot := range h.slots {
		h.keeper.retries.AddUnconfirmed(slot, h.giveBacks)
	}
	return true
}

// Release gives the slots back. It does nothing the second time.
func (h *Hold) Release() {
	if h.stop() {
		h.keeper.giveBack(context.Background(), h.slots)
	}
}
