// Package knownbans remembers the bans and blocks that this process knows, so that they hold while
// the store does not answer.
//
// A process knows those that it imposed itself, those that it saw in an answer of the store, and
// those that package banwatch reads from the lists. The table is asked only for counters that the
// store did not answer for. An answer without the ban removes it from the table. So a ban that was
// lost with the store's memory ends with the first answer, and the store's answers are never
// overruled.
//
// An answer does not say who imposed a ban. The ban is taken for a rule's until the list names an
// operator.
package knownbans

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

const (
	// Most is how many bans and blocks by operators a table holds, and separately how many bans by
	// rules. Beyond that, some that end soon are forgotten.
	Most = 50_000
	// sample is how many entries are looked at to find one that ends soon.
	sample = 64
)

// Table holds bans and blocks by their keys in the store. It is safe for concurrent use. A nil Table,
// of a process without Redis, holds nothing: NoteOverride, Lift, Lasts and Each do nothing.
type Table struct {
	clock *clock.Expiry
	most  int
	count atomic.Int64 // the number of entries, so that an empty table is not searched
	ahead atomic.Int64 // by how many microseconds the store's clock was ahead when a ban was last seen

	mu sync.RWMutex
	// lifted is when this process last lifted a ban, by clock.Now. Answers to earlier questions may
	// be out of date.
	lifted int64
	// The bans of rules are in a map of their own, so that they never evict an operator's.
	byRules, byOperators map[string]entry
}

// entry is a ban or a block.
type entry struct {
	ends  int64 // microseconds since the epoch, by this process's clock, or algorithm.Forever
	since int64 // when it was last confirmed, by clock.Now
}

// New returns an empty table that holds at most most entries of each kind.
func New(c *clock.Expiry, most int) *Table {
	return &Table{clock: c, most: most, byRules: make(map[string]entry), byOperators: make(map[string]entry)}
}

// now returns the time by this process's clock, in microseconds since the epoch.
func (t *Table) now() int64 { return t.clock.Awake()/1000 + t.clock.Ahead() }

// StoreTime returns the time by the store's clock, as far as known, in microseconds since the
// epoch.
func (t *Table) StoreTime() int64 { return t.now() + t.ahead.Load() }

// SawStoreTime records the time that the store's clock shows now.
func (t *Table) SawStoreTime(at int64) { t.ahead.Store(at - t.now()) }

// Begin returns the time at which a question to the store is sent.
func (t *Table) Begin() int64 { return t.clock.Now() }

// Remember adds the ban or block with a key, which lasts for lasts microseconds from now, or
// algorithm.Forever. byOperator says that an operator imposed it.
func (t *Table) Remember(key []byte, lasts int64, byOperator bool) {
	t.RememberAsOf(math.MaxInt64, key, lasts, byOperator)
}

// RememberAsOf is Remember for an answer of the store to a question that was sent at the given
// time. It does nothing if this process has lifted a ban since, because that may have been this
// one.
func (t *Table) RememberAsOf(sent int64, key []byte, lasts int64, byOperator bool) {
	e := entry{ends: t.endOf(lasts), since: t.clock.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if sent <= t.lifted {
		return
	}
	_, known := t.byOperators[string(key)]
	entries := t.byRules
	if byOperator || known {
		delete(t.byRules, string(key))
		entries = t.byOperators
	}
	if _, known := entries[string(key)]; !known && len(entries) >= t.most {
		evict(entries)
	}
	entries[string(key)] = e
	t.recount()
}

// endOf returns the end of an entry for a ban that lasts for lasts microseconds from now.
func (t *Table) endOf(lasts int64) int64 {
	if lasts >= algorithm.Forever {
		return algorithm.Forever
	}
	return t.now() + lasts
}

// evict removes the entry that ends first among some of them.
func evict(entries map[string]entry) {
	first, ends, seen := "", int64(math.MaxInt64), 0
	for key, e := range entries {
		if e.ends < ends {
			first, ends = key, e.ends
		}
		if seen++; seen == sample {
			break
		}
	}
	delete(entries, first)
}

// recount updates the count. The table must be locked.
func (t *Table) recount() { t.count.Store(int64(len(t.byRules) + len(t.byOperators))) }

// NoteOverride notes that this process has set the override with a key, or has removed it if set is
// nil. err is the store's error.
func (t *Table) NoteOverride(key []byte, set *algorithm.Override, err error) {
	switch {
	case t == nil:
	case set != nil && set.What == algorithm.OverrideBlocked:
		if err == nil {
			t.SawStoreTime(set.Set)
		}
		if err == nil || failure.MayHaveActed(err) {
			found := algorithm.FoundOverride{Ends: set.Ends}
			t.Remember(key, found.Lasts(t.StoreTime()), true)
		}
	case err == nil:
		t.Lift(key)
	}
}

// Lift removes what this process has just lifted in the store.
func (t *Table) Lift(key []byte) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lifted = t.clock.Now()
	t.remove(math.MaxInt64, key)
}

// ForgetAsOf removes a ban that the store does not have, according to its answer to a question that
// was sent at the given time. A ban that was confirmed since then stays.
func (t *Table) ForgetAsOf(sent int64, key []byte) {
	if _, known := t.find(key); !known {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(sent, key)
}

// remove removes a ban unless it was confirmed since then. The table must be locked.
func (t *Table) remove(since int64, key []byte) {
	for _, entries := range [...]map[string]entry{t.byRules, t.byOperators} {
		if e, known := entries[string(key)]; known && e.since < since {
			delete(entries, string(key))
		}
	}
	t.recount()
}

// Lasts returns for how many microseconds the ban or block with a key still holds, or
// algorithm.Forever. It is 0 if the table has none.
func (t *Table) Lasts(key []byte) int64 {
	if t == nil || t.count.Load() == 0 {
		return 0
	}
	switch e, _ := t.find(key); e.ends {
	case algorithm.Forever:
		return algorithm.Forever
	default:
		return max(0, e.ends-t.now())
	}
}

// Each visits the bans and blocks that still hold, in no order: the key, the end by this process's
// clock, and whether an operator imposed it. Calls do not wait for the visits.
func (t *Table) Each(visit func(key string, ends int64, byOperator bool)) {
	if t == nil {
		return
	}
	t.mu.RLock()
	tables := [...]map[string]entry{maps.Clone(t.byRules), maps.Clone(t.byOperators)}
	t.mu.RUnlock()
	for i, entries := range tables {
		for key, e := range entries {
			if e.ends > t.now() {
				visit(key, e.ends, i == 1)
			}
		}
	}
}

func (t *Table) find(key []byte) (e entry, known bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e, known = t.byOperators[string(key)]; !known {
		e, known = t.byRules[string(key)]
	}
	return e, known
}

// Unconfirmed removes the entries that have ended, and returns at most n keys of other entries that
// were not confirmed since the given time. At most half of them are bans by operators, so that the
// bans of rules have a turn too.
func (t *Table) Unconfirmed(since int64, n int) (keys []string) {
	var ended []string
	now := t.now()
	t.mu.RLock()
	for i, entries := range [...]map[string]entry{t.byOperators, t.byRules} {
		most := n * (i + 1) / 2
		for key, e := range entries {
			switch {
			case e.ends <= now:
				ended = append(ended, key)
			case e.since < since && len(keys) < most:
				keys = append(keys, key)
			}
		}
	}
	t.mu.RUnlock()
	for _, key := range ended {
		t.ForgetAsOf(since, []byte(key))
	}
	return keys
}
