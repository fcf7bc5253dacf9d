// Package abandoned gives back the turns of callers who have left.
//
// A turn comes back only while nobody waits behind it, because the waits of those behind it were
// announced. Callers leave in any order, and often all at once. So a turn that has to stay is kept.
// It is tried again when a newer one has come back, the newest turn first. It is also tried from
// time to time, because callers of other processes may wait behind it.
package abandoned

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Store holds the buckets.
type Store interface {
	// Do carries out an op.
	Do(ctx context.Context, op *algorithm.Op)
	// Change gives back a turn, as far as it still counts and nobody waits behind it, even if the context
	// has ended.
	Change(ctx context.Context, c *algorithm.Change) error
	// InBackground runs a task that nobody waits for, except Close.
	InBackground(do func())
}

// Turn is a turn that nobody uses.
type Turn struct {
	algorithm.Charge
	Counts time.Duration // for how long it counts at most
	until  time.Time
}

const (
	// maxKept bounds how many turns of a process are kept. Further ones are tried once.
	maxKept = 65_536
	// shortestWait is the time after which a turn that had to stay is tried again. The time doubles up
	// to longestWait, and starts afresh when a turn comes back: if callers of several processes stand
	// in one line alternately, each process soon follows the one before.
	shortestWait = 20 * time.Millisecond
	longestWait  = 2 * time.Second
)

// Turns are the abandoned turns of a process. They are safe for concurrent use.
type Turns struct {
	store    Store
	panicked func(error)

	mu       sync.Mutex
	byBucket map[name]*bucket
	kept     int
	closed   bool
}

// name is the name of a bucket: its key, and whether it belongs to this process alone.
type name struct {
	key   string
	local bool
}

// New returns the Turns of a process.
func New(store Store, panicked func(error)) *Turns {
	return &Turns{store: store, panicked: panicked, byBucket: make(map[name]*bucket)}
}

// Leave gives back a turn in the background. done is closed when it has come back, or has to stay.
func (t *Turns) Leave(turn Turn) (done <-chan struct{}) {
	if turn.Cost == 0 {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	t.mu.Lock()
	b := t.keep(turn)
	if b == nil {
		t.mu.Unlock()
		return t.tryOnce(turn)
	}
	begins := t.begin(b)
	done = b.pass
	t.mu.Unlock()
	if begins {
		t.background(func() { t.run(b) })
	}
	return done
}

// keep keeps a turn, and returns its bucket, or nil if there is no room. t must be locked.
func (t *Turns) keep(turn Turn) *bucket {
	if t.kept >= maxKept {
		return nil
	}
	turn.until = time.Now().Add(turn.Counts)
	b := t.byBucket[turn.name()]
	if b == nil {
		b = &bucket{name: turn.name()}
		t.byBucket[b.name] = b
	}
	heap.Push(&b.turns, turn)
	t.kept++
	b.wait = shortestWait
	return b
}

// tryOnce is Leave for a turn that is not kept.
func (t *Turns) tryOnce(turn Turn) (done <-chan struct{}) {
	tried := make(chan struct{})
	t.background(func() {
		defer close(tried)
		_, _ = t.giveBack(context.Background(), turn.Charge)
	})
	return tried
}

// Refund gives back permits of a turn, and returns the store's error. Permits that have to stay are
// kept.
func (t *Turns) Refund(ctx context.Context, turn Turn) error {
	stays, err := t.giveBack(ctx, turn.Charge)
	if err != nil {
		return err
	}
	if stays == 0 {
		t.background(func() { t.tryAgain(turn.name()) })
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.keep(turn.rest(stays)); b != nil && b.pass == nil && b.retry == nil {
		t.tryLater(b)
	}
	return nil
}

// giveBack gives back a turn. It returns how many of its permits stay because of those who wait.
func (t *Turns) giveBack(ctx context.Context, turn algorithm.Charge) (stays int64, err error) {
	c := &algorithm.Change{Charges: []algorithm.Charge{turn}, Turn: true}
	err = t.store.Change(ctx, c)
	return c.Lost, err
}

// Close stops the passes that timers begin.
func (t *Turns) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, b := range t.byBucket {
		if b.retry != nil {
			b.retry.Stop()
		}
	}
}

// background runs a task for which no caller waits, also when the store is closed.
func (t *Turns) background(task func()) {
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		go panics.Guard(task, t.panicked)()
		return
	}
	t.store.InBackground(task)
}

func (t *Turn) name() name { return name{string(t.Key), t.LocalShare > 0} }

// rest returns what is left of a turn when all but so many of its permits have come back.
func (t Turn) rest(stays int64) Turn {
	t.Charge = t.Part(stays)
	return t
}
