// Package lease takes permits of a counter from the shared store ahead of their use, and gives back
// those that are not used.
//
// A leased permit is used in the sub-window in which it was charged, by the store's clock, and with
// FixedWindow in its window and within Window/32. So it counts where it is used, and leases need no
// further sub-window. A permit is never kept for longer than [clock.MaxAge].
package lease

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/setassoc"
)

// sets bounds how many counters are leased at once: 4,096, or a few less where they share a set.
// Calls of further counters ask the store.
const sets = 512

// Source is the store that permits come from, and are given back to.
type Source interface {
	// Do carries out an op. Of one that stands for several calls, as many pass as fit.
	Do(ctx context.Context, op *algorithm.Op)
	// Change gives charges back, as far as they still count.
	Change(ctx context.Context, c *algorithm.Change) error
	// InBackground runs a function that only Close waits for.
	InBackground(do func())
	// Panicked reports a panic that was caught.
	Panicked(err error)
}

// Leases holds the counters of which this process has permits. They are safe for concurrent use.
type Leases struct {
	source    Source
	clock     *clock.Expiry
	timeout   time.Duration
	seed      maphash.Seed
	table     setassoc.Table[lease]
	recent    recentCalls
	giveBacks giveBackQueue
	tasks     tasks
	timers    sync.Pool // of *time.Timer
}

// New returns an empty Leases. The timeout is that of a call to the source.
func New(source Source, c *clock.Expiry, timeout time.Duration) *Leases {
	l := &Leases{source: source, clock: c, timeout: timeout, seed: maphash.MakeSeed(), table: setassoc.New[lease](sets)}
	l.giveBacks.source = source
	l.tasks.init()
	return l
}

// lease holds the permits of one counter for calls of any cost. Callers may choose the cost, so
// idle permits are bounded per counter. With a lease for each cost, callers with ten costs kept
// 7/32 of a limit idle.
type lease struct {
	key   []byte
	limit *algorithm.Limit
	batch atomic.Pointer[batch] // the permits to use; nil: none

	mu        sync.Mutex
	maxAhead  int64  // permits that a fetch may bring in advance
	fetch     *fetch // under way; callers without a permit wait for it
	used      int64  // permits of the last fetch that were used
	remaining int64  // permits that the store had left then
	idleSince int64  // when all permits had been used, or expired
	evicted   bool   // it was removed from the table
}

// Leasable reports whether permits of a counter may be fetched in advance.
func Leasable(c *algorithm.Counter) bool {
	return c.Lease > 0 && c.Cost > 0 && c.Limit.Leasable()
}

// isOf reports whether this is the lease of a counter.
func (e *lease) isOf(c *algorithm.Counter) bool {
	return string(e.key) == string(c.Key) && e.limit.Equal(c.Limit)
}

func (l *Leases) hash(key []byte) uint64 { return maphash.Bytes(l.seed, key) }

// Take takes the permits of a call from those that this process has. It reports whether there were
// enough.
func (l *Leases) Take(c *algorithm.Counter, v *algorithm.Verdict) bool {
	hash := l.hash(c.Key)
	e := l.table.Set(hash).Find(hash, func(e *lease) bool { return e.isOf(c) })
	if e == nil {
		return false
	}
	b := e.batch.Load()
	return b != nil && b.take(l.clock.Now(), c.Cost, v)
}

// findOrCreate returns a counter's lease, creating it if needed. It returns nil if the key was not
// called recently or the table is full.
func (l *Leases) findOrCreate(c *algorithm.Counter) *lease {
	hash := l.hash(c.Key)
	isOf := func(e *lease) bool { return e.isOf(c) }
	if e := l.table.Set(hash).Find(hash, isOf); e != nil {
		return e
	}
	if !l.recent.note(hash, l.clock.Now()) {
		return nil
	}
	set := l.table.SetForWriting(hash)
	set.Lock()
	defer set.Unlock()
	if e := set.Find(hash, isOf); e != nil {
		return e
	}
	e := &lease{key: append([]byte(nil), c.Key...), limit: c.Limit}
	replaced, ok := set.Put(hash, e, func(old *lease, _ bool) int64 { return old.rank() })
	if !ok {
		return nil
	}
	if replaced != nil {
		replaced.mu.Lock()
		replaced.evicted = true
		l.end(replaced)
		replaced.mu.Unlock()
	}
	return e
}

// rank returns how many permits were used last. A new lease replaces the one that ranks lowest, but
// never one in use.
func (e *lease) rank() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.batch.Load(); e.fetch != nil || b != nil && b.left() > 0 {
		return setassoc.Pinned
	}
	return e.used
}

// of returns the leases of a key.
func (l *Leases) of(key []byte) (all []*lease) {
	if set := l.table.Set(l.hash(key)); set != nil {
		set.Lock()
		defer set.Unlock()
		for e := range set.Entries() {
			if string(e.key) == string(key) {
				all = append(all, e)
			}
		}
	}
	return all
}

// end takes the permits of a lease out of use, and gives back those that are left. The lease must
// be locked.
func (l *Leases) end(e *lease) {
	b := e.batch.Swap(nil)
	if b == nil {
		return
	}
	left := b.retire()
	e.used, e.idleSince = b.granted-left, l.clock.Now()
	if left > 0 {
		l.giveBacks.add(b.charge(e, left))
		l.wake(0)
	}
}
