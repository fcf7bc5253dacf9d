package toplist

import (
	"cmp"
	"slices"
)

// lengths are how many entries a list of a minute has at most.
//
// A list of refusals is a summary of those that all processes add, as a sketch is one of calls. The
// lowest of its 257 scores is the floor, and the number of a subject is what its score is above
// that, at least: so a list needs no more than its scores, and nothing is subtracted from lists that
// are not full.
var lengths = [kinds]int{Refused: watched[Refused] + 1, Near: maxEntries}

// floorOf returns the floor of a list.
func floorOf(entries []Entry, of kind) float64 {
	if of == Near || len(entries) < lengths[of] {
		return 0
	}
	return slices.MinFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) }).Number
}
