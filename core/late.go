package core

import (
	"context"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// lateReleases are slots of Concurrency that could not be given back when their calls ended, or of which nobody knows whether
// they were taken. They are given back again and again until that is done, or a whole Window has freed them: giving a slot
// back twice does nothing. All of a limiter's are given back together, so that a store which is ill is asked once, not once
// for each.
type lateReleases struct {
	limiter *Limiter
	mu      sync.Mutex
	slots   []lateSlot
	timer   *time.Timer // set while there are slots
	wait    time.Duration
}

// lateSlot is one of them.
type lateSlot struct {
	algorithm.Charge
	free  time.Time // when it is free by itself
	times int       // how often it has to be given back: a call that is still on its way may take it after the first time
}

const (
	// maxLate bounds how many are remembered; those beyond are free after their Window.
	maxLate = 10_000
	// lateBatch is how many are given back in one go.
	lateBatch = 100
	// lateWait is how long after a failure they are tried again, doubling up to longestLateWait.
	lateWait        = 100 * time.Millisecond
	longestLateWait = time.Second
)

// add remembers slots that are to be given back so often.
func (r *lateReleases) add(slots []algorithm.Charge, times int) {
	if len(slots) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slot := range slots {
		if len(r.slots) < maxLate {
			r.slots = append(r.slots, lateSlot{slot, time.Now().Add(micros(slot.Limit.Window)), times})
		}
	}
	if r.timer == nil && len(r.slots) > 0 {
		r.wait = lateWait
		r.timer = time.AfterFunc(r.wait, r.run)
	}
}

// run tries all of them once, and comes again while any are left.
func (r *lateReleases) run() {
	r.mu.Lock()
	trying := r.slots
	r.slots = nil
	r.mu.Unlock()
	left, failed := r.try(trying)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots = append(left, r.slots...)
	r.slots = r.slots[:min(len(r.slots), maxLate)]
	if len(r.slots) == 0 || r.limiter.closed.Load() {
		r.slots, r.timer = nil, nil
		return
	}
	r.wait = min(2*r.wait, longestLateWait)
	if !failed {
		r.wait = lateWait
	}
	r.timer.Reset(r.wait)
}

// try gives all of them back once, and returns those that are left to be tried again.
func (r *lateReleases) try(slots []lateSlot) (left []lateSlot, failed bool) {
	now := time.Now()
	for begin := 0; begin < len(slots); begin += lateBatch {
		batch := slots[begin:min(begin+lateBatch, len(slots))]
		var charges []algorithm.Charge
		for _, slot := range batch {
			if slot.free.After(now) {
				charges = append(charges, slot.Charge)
			}
		}
		if len(charges) == 0 {
			continue
		}
		if r.limiter.store.GiveBack(context.Background(), charges) != nil {
			failed = true // perhaps on one shard alone: the others are not to wait for it
		} else {
			for i := range batch {
				batch[i].times--
			}
		}
		for _, slot := range batch {
			if slot.times > 0 && slot.free.After(now) {
				left = append(left, slot)
			}
		}
	}
	return left, failed
}
