package core

import (
	"math"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// CostBySize returns a Cost by the length of the body: one permit for each unit of so many bytes, or part of one, and one for
// a call without a body. A body that can never fit gets 413 (Content Too Large). One whose length is not known before it is
// read, as in chunks or in gRPC, costs all that the smallest of the rule's limits lets through at once, so only one of them
// passes. A unit below 1 panics.
func CostBySize(unit int64) func(Request) int {
	must(unit >= 1, "CostBySize needs a unit of at least one byte")
	return func(r Request) int {
		size := r.Size()
		if c, ok := r.(*call); ok {
			c.bySize = true
		}
		if size < 0 {
			return unknownSize
		}
		return int(max(1, min((size-1)/unit+1, unknownSize-1)))
	}
}

// unknownSize is the cost by size of a body whose length nobody knows.
const unknownSize = math.MaxInt

// fitting returns the largest cost that fits into all of a rule's limits, of which own takes the place of the first. A slot
// of Concurrency costs the same for every call.
func fitting(own *quota, quotas []*quota) (cost int64) {
	cost = algorithm.MaxPermits
	for i, q := range quotas {
		if i == 0 {
			q = own
		}
		if q.compiled.Kind != algorithm.Concurrency {
			cost = min(cost, q.compiled.Max)
		}
	}
	return cost
}
