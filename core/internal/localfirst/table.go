package localfirst

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// table holds a fixed number of entries, which readers find without a lock. It is cut into sets of eight places; a hash chooses the
// set, and a new entry takes the place there that is worth least. Its sets come to be when they are first written to.
type table[E any] struct {
	parts []atomic.Pointer[part[E]]
}

// part is so many sets of a table.
type part[E any] [partSets]set[E]

const (
	partSets = 128
	places   = 8
)

// set is eight places.
type set[E any] struct {
	tags    atomic.Uint64 // a byte of each entry's hash, so that a reader looks at the entries that may be meant alone; 0: empty
	asked   atomic.Uint32 // a bit for each entry that was asked for since all were forgotten
	entries [places]atomic.Pointer[E]
	mu      sync.Mutex // of who writes
}

func newTable[E any](sets int) table[E] {
	return table[E]{make([]atomic.Pointer[part[E]], sets/partSets)}
}

// set is that of a hash; nil when nothing was written there yet.
func (t *table[E]) set(hash uint64) *set[E] {
	if p := t.parts[hash/partSets%uint64(len(t.parts))].Load(); p != nil {
		return &p[hash%partSets]
	}
	return nil
}

// setToWrite is that of a hash, made if it is not there yet.
func (t *table[E]) setToWrite(hash uint64) *set[E] {
	if s := t.set(hash); s != nil {
		return s
	}
	t.parts[hash/partSets%uint64(len(t.parts))].CompareAndSwap(nil, new(part[E]))
	return t.set(hash)
}

// tagOf is the byte of a hash that stands in a set's tags.
func tagOf(hash uint64) uint64 { return hash>>57 | 0x80 }

// find is the entry which is meant; nil: there is none.
func (s *set[E]) find(hash uint64, meant func(*E) bool) *E {
	tag, tags := tagOf(hash), s.tags.Load()
	for place := 0; tags != 0; place, tags = place+1, tags>>8 {
		if tags&0xff != tag {
			continue
		}
		if e := s.entries[place].Load(); e != nil && meant(e) {
			if bit := uint32(1) << place; s.asked.Load()&bit == 0 {
				s.asked.Or(bit)
			}
			return e
		}
	}
	return nil
}

// put gives an entry a place: that of the entry which is worth least, an empty one if there is one, and of several any. What is worth
// keep has to stay. It returns what was there before. The set is locked.
func (s *set[E]) put(hash uint64, e *E, worth func(old *E, asked bool) int64) (gone *E, ok bool) {
	least, at := int64(keep), 0
	first := rand.IntN(places)
	for i := range places {
		place, value := (first+i)%places, int64(empty)
		if old := s.entries[place].Load(); old != nil {
			value = worth(old, s.asked.Load()>>place&1 == 1)
		}
		if value < least {
			least, at = value, place
		}
	}
	if least == keep {
		return nil, false
	}
	if bits.OnesCount32(s.asked.Load()) == places {
		s.asked.Store(0) // all were asked for: they have to prove themselves again
	}
	s.asked.And(^(uint32(1) << at))
	gone = s.entries[at].Swap(e)
	s.tags.Store(s.tags.Load()&^(0xff<<(8*at)) | tagOf(hash)<<(8*at))
	return gone, true
}

// remove takes an entry out. The set is locked.
func (s *set[E]) remove(e *E) {
	for place := range places {
		if s.entries[place].Load() == e {
			s.tags.Store(s.tags.Load() &^ (0xff << (8 * place)))
			s.entries[place].Store(nil)
		}
	}
}

// each visits every set that was written to, locked.
func (t *table[E]) each(visit func(*set[E])) {
	for i := range t.parts {
		p := t.parts[i].Load()
		if p == nil {
			continue
		}
		for j := range p {
			s := &p[j]
			if s.tags.Load() != 0 {
				s.mu.Lock()
				visit(s)
				s.mu.Unlock()
			}
		}
	}
}

// all are the entries of a set.
func (s *set[E]) all(yield func(*E) bool) {
	for place := range places {
		if e := s.entries[place].Load(); e != nil && !yield(e) {
			return
		}
	}
}

// What an entry is worth which has to stay, an empty place, and an entry that the new one is to replace.
const (
	keep    = math.MaxInt64
	empty   = math.MinInt64 + 1
	replace = math.MinInt64
)
