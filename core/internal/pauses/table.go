package pauses

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
)

const (
	// maxKnown is how many pauses a process knows. Beyond that, some that end soon are forgotten.
	maxKnown = 50_000
	// sample is how many pauses are looked at to find one that ends soon.
	sample = 64
	// minSweep is the smallest number of pauses at which those that have ended are removed.
	minSweep = 1_000
)

// Table has the pauses that this process knows, by their keys in the store: those that it recorded
// or met in an answer. While the store does not answer, they hold. An answer without the pause
// removes it, so the store's answers are never overruled. A Table is safe for concurrent use.
type Table struct {
	clock clock.Expiry
	most  int          // maxKnown, except in tests
	count atomic.Int64 // the number of pauses, so that an empty table is not searched
	ahead atomic.Int64 // by how many microseconds the store's clock was ahead when a pause was last seen

	mu sync.RWMutex
	// lifted is when an operator last ended a pause here, by clock.Now. Answers to earlier
	// questions may be out of date.
	lifted  int64
	known   map[string]known
	sweepAt int // the number of pauses at which those that have ended are removed
}

// known is what is known of a pause.
type known struct {
	rule, key string
	ends      int64 // microseconds since the epoch, by this process's clock
	since     int64 // when it was last confirmed, by clock.Now
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{most: maxKnown, known: make(map[string]known), sweepAt: minSweep}
	t.clock.Start()
	return t
}

// Sent returns the time at which a question to the store is sent.
func (t *Table) Sent() int64 { return t.clock.Now() }

// Saw notes what the store said about the pause of a rule's key, in its answer to a question that
// was sent at the given time.
func (t *Table) Saw(stored []byte, rule, key string, v *algorithm.Verdict, sent int64) {
	switch {
	case v.From != algorithm.FromStore || v.Err != nil || v.Ended != nil:
	case v.RetryAfter > 0:
		t.remember(stored, rule, key, v.At, v.RetryAfter, sent)
	case t.count.Load() > 0:
		t.forget(stored, sent)
	}
}

// Hold begins a pause that the store has not recorded, or makes it longer.
func (t *Table) Hold(stored []byte, rule, key string, p *algorithm.Pause) (now algorithm.Paused) {
	already := t.Lasts(stored)
	now.At, now.Lasts = t.storeTime(), max(p.Span, already)
	if now.Lasts == 0 {
		now.Lasts = p.Base
	}
	now.Longer = now.Lasts > already
	t.remember(stored, rule, key, now.At, now.Lasts, math.MaxInt64)
	return now
}

// remember notes that a pause lasts for lasts microseconds from now, which is at by the store's
// clock, as the store said in its answer to a question that was sent at the given time. It does
// nothing if an operator has ended a pause since, because that may have been this one.
func (t *Table) remember(stored []byte, rule, key string, at, lasts, sent int64) {
	t.ahead.Store(at - t.now())
	t.mu.Lock()
	defer t.mu.Unlock()
	if sent <= t.lifted {
		return
	}
	p, found := t.known[string(stored)]
	if !found {
		t.makeRoom()
		p.rule, p.key = strings.Clone(rule), strings.Clone(key) // a framework may have lent them for one call
	}
	p.ends, p.since = t.now()+lasts, t.clock.Now()
	t.known[string(stored)] = p
	t.count.Store(int64(len(t.known)))
}

// makeRoom makes room for another pause. The table must be locked.
func (t *Table) makeRoom() {
	if len(t.known) >= t.sweepAt {
		now := t.now()
		maps.DeleteFunc(t.known, func(_ string, p known) bool { return p.ends <= now })
		t.sweepAt = max(minSweep, 2*len(t.known))
	}
	if len(t.known) < t.most {
		return
	}
	first, ends, seen := "", int64(math.MaxInt64), 0
	for stored, p := range t.known {
		if p.ends < ends {
			first, ends = stored, p.ends
		}
		if seen++; seen == sample {
			break
		}
	}
	delete(t.known, first)
}

// forget removes a pause that the store does not have, according to its answer to a question that
// was sent at the given time. A pause that was confirmed since then stays.
func (t *Table) forget(stored []byte, sent int64) {
	t.mu.RLock()
	_, found := t.known[string(stored)]
	t.mu.RUnlock()
	if !found {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[string(stored)].since < sent {
		delete(t.known, string(stored))
		t.count.Store(int64(len(t.known)))
	}
}

// Lift removes a pause that an operator has ended.
func (t *Table) Lift(stored []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lifted = t.clock.Now()
	delete(t.known, string(stored))
	t.count.Store(int64(len(t.known)))
}

// Lasts returns for how many microseconds a pause still holds, or 0 if the table has none.
func (t *Table) Lasts(stored []byte) int64 {
	if t.count.Load() == 0 {
		return 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return max(0, t.known[string(stored)].ends-t.now())
}

// StandIn answers for the pauses that the store did not answer for, if the table has them.
func (t *Table) StandIn(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	if t.count.Load() == 0 {
		return
	}
	for i := range counters {
		if verdicts[i].Err == nil || !counters[i].Limit.Properties().Pauses {
			continue
		}
		if lasts := t.Lasts(counters[i].Key); lasts > 0 {
			verdicts[i] = algorithm.Verdict{At: t.storeTime(), RetryAfter: lasts, From: algorithm.FromRefusal}
		}
	}
}

// Each visits the pauses that still hold and whose keys can be listed, in no order, with their ends
// by this process's clock. Calls do not wait for the visits.
func (t *Table) Each(visit func(rule, key string, ends int64)) {
	t.mu.RLock()
	all := maps.Clone(t.known)
	t.mu.RUnlock()
	for _, p := range all {
		if p.ends > t.now() && len(p.key) <= MaxKey {
			visit(p.rule, p.key, p.ends)
		}
	}
}

// now returns the time by this process's clock, in microseconds since the epoch. It is not set back.
func (t *Table) now() int64 { return t.clock.Passed() }

// storeTime returns the time by the store's clock, as far as known.
func (t *Table) storeTime() int64 { return t.now() + t.ahead.Load() }
