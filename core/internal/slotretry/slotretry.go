// Package slotretry frees slots of Concurrency that could not be freed when their calls ended.
package slotretry

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Queue holds slots that the store did not take back, or that it may have granted without an
// answer. It gives them back again and again until that succeeds, or until their Window is over and
// they are free anyway. A store that hangs may grant a slot when it answers again, so a slot that is to
// be given back twice is not forgotten before that, unless the store refuses to take it back. Giving a
// slot back twice does nothing. All slots of a limiter are given back together, so a struggling store
// gets one request instead of one for each slot. A Queue is safe for concurrent use.
type Queue struct {
	giveBack func(context.Context, []algorithm.Charge) error
	panicked func(err error)

	mu     sync.Mutex
	slots  []slot
	trying int         // further slots, which are being given back
	timer  *time.Timer // set while there are slots
	wait   time.Duration
	closed bool
}

// slot is one slot that is to be given back.
type slot struct {
	algorithm.Charge
	freeAt time.Time // when its Window is over
	times  int       // attempts that remain; a call on its way to the store may take the slot after the first
}

const (
	// maxSlots bounds the queue. Slots beyond it are free after their Window. Slots that may have been
	// granted have half of the room, because during a long outage they would take all of it.
	maxSlots = 10_000
	// batchSize is how many slots are given back at once.
	batchSize = 100
	// shortestWait is how long after a failure the slots are tried again. It doubles up to
	// longestWait.
	shortestWait = 100 * time.Millisecond
	longestWait  = time.Second
)

// New returns a queue that gives slots back with giveBack and reports panics to panicked.
func New(giveBack func(context.Context, []algorithm.Charge) error, panicked func(err error)) *Queue {
	return &Queue{giveBack: giveBack, panicked: panicked}
}

// Add adds slots that the store did not take back.
func (q *Queue) Add(charges []algorithm.Charge) {
	if len(charges) > 0 {
		q.add(charges, 1, maxSlots)
	}
}

// AddUnconfirmed adds a slot that the store may have granted. It is to be given back a number of times,
// if any.
func (q *Queue) AddUnconfirmed(charge algorithm.Charge, times int) {
	if times > 0 {
		q.add([]algorithm.Charge{charge}, times, maxSlots/2)
	}
}

// add adds slots unless the queue is full.
func (q *Queue) add(charges []algorithm.Charge, times, most int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, charge := range charges {
		if len(q.slots)+q.trying < most {
			window := time.Duration(charge.Limit.Window) * time.Microsecond
			q.slots = append(q.slots, slot{charge, time.Now().Add(window), times})
		}
	}
	if q.timer == nil && len(q.slots) > 0 {
		q.wait = shortestWait
		q.timer = time.AfterFunc(q.wait, panics.Guard(q.run, q.panicked))
	}
}

// Len returns the number of slots that wait.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.slots)
}

// Close makes the next attempt the last.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// run tries all slots once, and runs again while any are left.
func (q *Queue) run() {
	q.mu.Lock()
	trying := q.slots
	q.slots, q.trying = nil, len(trying)
	q.mu.Unlock()
	left, failed := q.try(trying)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.slots, q.trying = append(left, q.slots...), 0
	if len(q.slots) == 0 || q.closed {
		q.slots, q.timer = nil, nil
		return
	}
	q.wait = min(2*q.wait, longestWait)
	if !failed {
		q.wait = shortestWait
	}
	q.timer.Reset(q.wait)
}

// try gives slots back once, and returns those that must be tried again. Perhaps only one shard failed, so
// a failure does not keep the next ones from being tried.
func (q *Queue) try(slots []slot) (left []slot, failed bool) {
	now := time.Now()
	for batch := range slices.Chunk(slots, batchSize) {
		again, batchFailed := q.tryTogether(batch, now)
		left, failed = append(left, again...), failed || batchFailed
	}
	return left, failed
}

// tryTogether is try for some slots, by one request. If a key holds a value that we never wrote, the
// request fails for all, so each is tried by itself.
func (q *Queue) tryTogether(slots []slot, now time.Time) (left []slot, failed bool) {
	var charges []algorithm.Charge
	for _, s := range slots {
		if s.freeAt.After(now) {
			charges = append(charges, s.Charge)
		}
	}
	if len(charges) == 0 {
		return nil, false
	}
	err := q.giveBackSafely(charges)
	lasting := false
	if err != nil {
		classes := failure.ClassesOf(err)
		if slices.Contains(classes, failure.Foreign) {
			return q.tryEach(slots, now)
		}
		lasting = !slices.ContainsFunc(classes, func(c failure.Class) bool { return !c.Lasting() })
	}
	for _, s := range slots {
		switch {
		case err == nil:
			s.times--
		case s.times > 1 && !lasting: // it may be taken when the store answers again
			s.freeAt = now.Add(time.Duration(s.Limit.Window) * time.Microsecond)
		}
		if s.times > 0 && s.freeAt.After(now) {
			left = append(left, s)
		}
	}
	return left, err != nil
}

// tryEach is try for slots of which one has a key with a foreign value. There is no slot of ours in that,
// so it is forgotten. After another failure, the rest is left for the next time.
func (q *Queue) tryEach(slots []slot, now time.Time) (left []slot, failed bool) {
	if len(slots) == 1 {
		return nil, false
	}
	for i := range slots {
		again, failed := q.tryTogether(slots[i:i+1], now)
		if left = append(left, again...); failed {
			return append(left, slots[i+1:]...), true
		}
	}
	return left, false
}

// giveBackSafely gives slots back. A panic is a failure, after which they are tried again.
func (q *Queue) giveBackSafely(charges []algorithm.Charge) error {
	err := panics.Catch(func() error { return q.giveBack(context.Background(), charges) })
	if panics.Is(err) {
		q.panicked(err)
	}
	return err
}
