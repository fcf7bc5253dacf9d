package marks

import (
	"hash/maphash"
	"iter"
	"sync/atomic"
)

// table holds the marks of one rule by the names of their subjects. Readers take no lock; writers hold
// that of the set. It is a hash table with open addressing, behind a bit map: a search that finds
// nothing, which is nearly every one, mostly reads a single bit, and the bits of 100,000 marks fit
// into a processor's cache (BenchmarkFind).
type table struct {
	slots   atomic.Pointer[slots]
	entries int // in the slots, with those that have no mark any more
}

// slots are a power of two.
type slots struct {
	bits  []atomic.Uint64 // bitsForEach for each slot; that of each entry is set, by its hash
	slots []slot
}

const bitsForEach = 4

type slot struct {
	hash  atomic.Uint64 // of the entry's name, or 0 if the slot is free
	entry atomic.Pointer[entry]
}

// entry has the marks of one subject.
type entry struct {
	name       string
	ban, other place
}

// place has a mark, or nil.
type place struct {
	atomic.Pointer[Mark]
	found int // the reading of all marks in which it was found last; the lock of the set guards it
}

func (e *entry) of(ban bool) *place {
	if ban {
		return &e.ban
	}
	return &e.other
}

func (e *entry) places() [2]*place { return [...]*place{&e.ban, &e.other} }

func (e *entry) isEmpty() bool { return e.ban.Load() == nil && e.other.Load() == nil }

var seed = maphash.MakeSeed()

// find returns the entry of a name, or nil.
func (t *table) find(name []byte) *entry {
	s := t.slots.Load()
	if s == nil {
		return nil
	}
	hash := maphash.Bytes(seed, name) | 1
	if word, bit := s.bitOf(hash); word.Load()&bit == 0 {
		return nil
	}
	mask := uint64(len(s.slots) - 1)
	for i := hash >> 1; ; i++ {
		p := &s.slots[i&mask]
		switch p.hash.Load() {
		case 0:
			return nil
		case hash:
			if e := p.entry.Load(); e.name == string(name) {
				return e
			}
		}
	}
}

// bitOf returns the word and the bit of a hash. They come from its upper half, and the slot from the
// lower one.
func (s *slots) bitOf(hash uint64) (word *atomic.Uint64, bit uint64) {
	return &s.bits[hash>>38&uint64(len(s.bits)-1)], 1 << (hash >> 32 & 63)
}

// add returns the entry of a name, creating it if needed.
func (t *table) add(name string) *entry {
	if e := t.find([]byte(name)); e != nil {
		return e
	}
	if s := t.slots.Load(); s == nil || 2*(t.entries+1) > len(s.slots) {
		t.rebuild()
	}
	e := &entry{name: name}
	t.slots.Load().insert(e)
	t.entries++
	return e
}

// rebuild leaves out the entries without a mark, and makes room for as many again. Readers may still
// search the slots before: the entries are the same.
func (t *table) rebuild() {
	live := 0
	for e := range t.all() {
		if !e.isEmpty() {
			live++
		}
	}
	size := 64
	for size < 3*(live+1) { // half of it is room for others, so that this is done seldom
		size *= 2
	}
	s := &slots{make([]atomic.Uint64, size*bitsForEach/64), make([]slot, size)}
	for e := range t.all() {
		if !e.isEmpty() {
			s.insert(e)
		}
	}
	t.entries = live
	t.slots.Store(s)
}

// insert puts an entry into a free slot. The entry is there before its hash is.
func (s *slots) insert(e *entry) {
	hash, mask := maphash.String(seed, e.name)|1, uint64(len(s.slots)-1)
	for i := hash >> 1; ; i++ {
		if p := &s.slots[i&mask]; p.hash.Load() == 0 {
			p.entry.Store(e)
			p.hash.Store(hash)
			word, bit := s.bitOf(hash)
			word.Or(bit)
			return
		}
	}
}

// all visits all entries.
func (t *table) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		s := t.slots.Load()
		if s == nil {
			return
		}
		for i := range s.slots {
			if e := s.slots[i].entry.Load(); e != nil && !yield(e) {
				return
			}
		}
	}
}
