package toplist

import (
	"cmp"
	"slices"
)

// lengths are the largest numbers of entries in the lists of a minute.
//
// A list of refusals summarizes what all processes add, as a sketch summarizes calls. The lowest of
// its 257 scores is the floor, and the number of a subject is at least its score minus the floor.
// So a list needs only its scores, and nothing is subtracted in a list that is not full.
var lengths = [kinds]int{Refused: watched[Refused] + 1, Near: maxEntries}

// floorOf returns the floor of a list.
func floorOf(entries []Entry, of kind) float64 {
	if of == Near || len(entries) < lengths[of] {
		return 0
	}
	return slices.MinFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) }).Number
}
