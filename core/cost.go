package core

import (
	"math"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// CostBySize returns a Rule.Cost by the length of the body: the number of units of that many bytes,
// rounded up, and 1 for a call without a body. A body that can never fit gets 413 (Content Too
// Large).
//
// If the length is not known before the body is read, as in chunks or in gRPC, the call costs as
// much as the smallest of the rule's limits lets through at once. So only one such call passes.
// CostBySize panics if unit is less than 1.
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
		return int(max(1, min((size-1)/unit+1, largeSize)))
	}
}

// The costs that CostBySize computes for a body of unknown length, and for one of so many units that
// it never fits, though on 32 bits a limit may be as large.
const (
	unknownSize = math.MaxInt
	largeSize   = unknownSize - 1
)

// permits returns what a rule's Cost returned, as counters take it. Only a body of unknown length
// costs algorithm.LargestCost, for which unknownSize stands: an int may be smaller.
func (c *call) permits(cost int) int64 {
	switch {
	case c.bySize && cost == unknownSize:
		return algorithm.LargestCost
	case c.bySize && cost == largeSize:
		return algorithm.LargestCost - 1
	}
	return min(int64(cost), algorithm.LargestCost-1)
}
