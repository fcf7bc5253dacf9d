package memstore

import (
	"hash/maphash"
	"slices"
)

// maxEntries is how many entries a table can hold. A slot stores an entry's index plus one in 16
// bits.
const maxEntries = 1<<16 - 1

// table holds the entries of a shard in one slice, and slots to find them: a hash table with linear
// probing, at most three quarters full. A slot holds 16 bits of the key's hash, its tag, and the
// index of the entry. The tag alone determines the slot's home, so slots can be moved without their
// keys. With four bytes per slot, the slots take 6 bytes for each entry.
type table struct {
	slots   []uint32 // see slotValue; 0 is empty
	entries []entry
	seed    maphash.Seed
}

// tag returns the part of a key's hash that its slot holds. Other bits choose the shard.
func tag(hash uint64) uint16 { return uint16(hash >> 48) }

// tagOf returns the tag of the key at an index.
func (t *table) tagOf(index int) uint16 {
	var room [256]byte
	return tag(maphash.Bytes(t.seed, t.entries[index].appendTo(room[:0])))
}

// home returns the slot where the search for a hash begins.
func (t *table) home(hash uint16) int {
	return int(uint64(hash) * uint64(len(t.slots)) >> 16)
}

func (t *table) next(slot int) int {
	if slot++; slot < len(t.slots) {
		return slot
	}
	return 0
}

// find returns the entry of a key, or nil. It is valid until the table is changed.
func (t *table) find(key []byte, hash uint16) *entry {
	if index := t.indexOf(key, hash); index >= 0 {
		return &t.entries[index]
	}
	return nil
}

// indexOf returns the index of a key's entry, or -1.
func (t *table) indexOf(key []byte, hash uint16) int {
	if len(t.entries) == 0 {
		return -1
	}
	for slot := t.home(hash); t.slots[slot] != 0; slot = t.next(slot) {
		if uint16(t.slots[slot]>>16) != hash {
			continue
		}
		if index := int(uint16(t.slots[slot])) - 1; t.entries[index].is(key) {
			return index
		}
	}
	return -1
}

// slotAt returns the slot of the entry at an index.
func (t *table) slotAt(index int, hash uint16) int {
	slot, want := t.home(hash), slotValue(index, hash)
	for t.slots[slot] != want {
		slot = t.next(slot)
	}
	return slot
}

// slotValue returns the value of the slot of the entry at an index. It is never 0.
func slotValue(index int, hash uint16) uint32 { return uint32(hash)<<16 | uint32(index+1) }

// insert writes a value into the first empty slot from its home on.
func (t *table) insert(value uint32) {
	slot := t.home(uint16(value >> 16))
	for t.slots[slot] != 0 {
		slot = t.next(slot)
	}
	t.slots[slot] = value
}

// add adds an entry for a key that has none.
func (t *table) add(n name, hash uint16) *entry {
	if len(t.entries) == cap(t.entries) {
		t.resize(len(t.entries) + len(t.entries)/16 + 4)
	}
	t.entries = append(t.entries, entry{name: n})
	index := len(t.entries) - 1
	t.insert(slotValue(index, hash))
	return &t.entries[index]
}

// resize makes room for the given number of entries, and for as many more as fit into the memory
// allocated for them. So a table is never much larger than its contents.
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

// remove removes an entry and moves the last one into its place.
func (t *table) remove(index int) {
	last := len(t.entries) - 1
	t.emptySlot(t.slotAt(index, t.tagOf(index)))
	if index != last {
		hash := t.tagOf(last)
		t.slots[t.slotAt(last, hash)] = slotValue(index, hash)
		t.entries[index] = t.entries[last]
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

// emptySlot empties a slot. Values behind it that are not in their home slot move up, so that a
// search from their home still finds them.
func (t *table) emptySlot(slot int) {
	for at := t.next(slot); t.slots[at] != 0; at = t.next(at) {
		if home := t.home(uint16(t.slots[at] >> 16)); t.distance(home, at) >= t.distance(slot, at) {
			t.slots[slot], slot = t.slots[at], at
		}
	}
	t.slots[slot] = 0
}

// distance returns how many slots it is from one slot to another.
func (t *table) distance(from, to int) int {
	if to < from {
		to += len(t.slots)
	}
	return to - from
}
