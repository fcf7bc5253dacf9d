package memstore

import (
	"hash/maphash"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// maxEntries is the most that a table can hold: places are numbered in 16 bits, from one.
const maxEntries = 1<<16 - 1

// entry is one counter. It takes 64 bytes, a cache line.
type entry struct {
	key   string
	state algorithm.State
	// use is when the state equals a fresh one, in microseconds awake, times two; and one more if anybody asked for it since it was
	// new, or since the hand last passed.
	use int64
}

func (e *entry) freshAt() int64    { return e.use >> 1 }
func (e *entry) setFresh(at int64) { e.use = at<<1 | e.use&1 }
func (e *entry) asked() bool       { return e.use&1 == 1 }
func (e *entry) forgetAsked()      { e.use &^= 1 }

// stay keeps the entry at least until then: a refused call may have counted all use as made now,
// because the clock stepped back.
func (e *entry) stay(at int64) {
	if e.freshAt() < at {
		e.setFresh(at)
	}
}

func (e *entry) ask() {
	if !e.asked() { // who only reads leaves the line to others
		e.use |= 1
	}
}

// table holds the entries of a shard, side by side, and an index of them by key: open addressing with linear probing, at most
// three quarters full. A slot is 0 where it is empty, else 16 bits of the key's hash, and then the place of its entry plus one. The
// bits of the hash alone say where a slot belongs, so moving slots needs no keys; which entry is a key's, only the key says.
type table struct {
	slots   []uint32
	entries []entry
	seed    maphash.Seed
}

// tag is the part of a key's hash that stands in its slot. The shard is told from others.
func tag(hash uint64) uint16 { return uint16(hash >> 48) }

// tagOf is that of the key at a place.
func (t *table) tagOf(place int) uint16 { return tag(maphash.String(t.seed, t.entries[place].key)) }

// home is the slot that a hash belongs in.
func (t *table) home(hash uint16) int {
	return int(uint64(hash) * uint64(len(t.slots)) >> 16)
}

func (t *table) next(slot int) int {
	if slot++; slot < len(t.slots) {
		return slot
	}
	return 0
}

// find is the entry of a key, or nil. It is valid until the table is changed.
func (t *table) find(key []byte, hash uint16) *entry {
	if place := t.placeOf(key, hash); place >= 0 {
		return &t.entries[place]
	}
	return nil
}

// placeOf is where the entry of a key is, or -1.
func (t *table) placeOf(key []byte, hash uint16) int {
	if len(t.entries) == 0 {
		return -1
	}
	for slot := t.home(hash); t.slots[slot] != 0; slot = t.next(slot) {
		if uint16(t.slots[slot]>>16) != hash {
			continue
		}
		if place := int(uint16(t.slots[slot])) - 1; t.entries[place].key == string(key) {
			return place
		}
	}
	return -1
}

// slotOf is the slot of an entry that is there.
func (t *table) slotOf(place int, hash uint16) int {
	slot, want := t.home(hash), written(place, hash)
	for t.slots[slot] != want {
		slot = t.next(slot)
	}
	return slot
}

// written is what stands in the slot of an entry.
func written(place int, hash uint16) uint32 { return uint32(hash)<<16 | uint32(place+1) }

// insert writes it into the first free slot from its home on.
func (t *table) insert(written uint32) {
	slot := t.home(uint16(written >> 16))
	for t.slots[slot] != 0 {
		slot = t.next(slot)
	}
	t.slots[slot] = written
}

// add makes an entry for a key that has none.
func (t *table) add(key string, hash uint16) *entry {
	if len(t.entries) == cap(t.entries) {
		t.resize(len(t.entries) + len(t.entries)/16 + 4)
	}
	t.entries = append(t.entries, entry{key: key})
	place := len(t.entries) - 1
	t.insert(written(place, hash))
	return &t.entries[place]
}

// resize makes room for so many entries, and what else lies in the piece of memory that holds them, so that a table is never much
// larger than what it holds.
func (t *table) resize(room int) {
	t.entries = append(slices.Grow([]entry(nil), room), t.entries...)
	room = cap(t.entries)
	old := t.slots
	t.slots = make([]uint32, room+room/3+1)
	for _, slot := range old {
		if slot != 0 {
			t.insert(slot)
		}
	}
}

// remove takes an entry out and moves the last one into its place.
func (t *table) remove(place int) {
	last := len(t.entries) - 1
	t.free(t.slotOf(place, t.tagOf(place)))
	if place != last {
		hash := t.tagOf(last)
		t.slots[t.slotOf(last, hash)] = written(place, hash)
		t.entries[place] = t.entries[last]
	}
	t.entries[last] = entry{}
	t.entries = t.entries[:last]
	switch {
	case last == 0:
		*t = table{seed: t.seed}
	case last < cap(t.entries)/2-16:
		t.resize(last)
	}
}

// free empties a slot. Those behind it that it kept from their home move up, so that every one is still found from there.
func (t *table) free(slot int) {
	for at := t.next(slot); t.slots[at] != 0; at = t.next(at) {
		if home := t.home(uint16(t.slots[at] >> 16)); t.behind(home, at) >= t.behind(slot, at) {
			t.slots[slot], slot = t.slots[at], at
		}
	}
	t.slots[slot] = 0
}

// behind is how many slots at comes behind from.
func (t *table) behind(from, at int) int {
	if at < from {
		at += len(t.slots)
	}
	return at - from
}
