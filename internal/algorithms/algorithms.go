// Package algorithms lists the algorithms in one place, so that code for all of them includes every
// new one.
package algorithms

import (
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// All returns all algorithms.
func All() (all []core.Algorithm) {
	for a := core.SlidingWindow; !strings.HasPrefix(a.String(), "Algorithm("); a++ {
		all = append(all, a)
	}
	return all
}

// Charged returns the algorithms that charge permits: all except Concurrency.
func Charged() (all []core.Algorithm) {
	for _, a := range All() {
		if a != core.Concurrency {
			all = append(all, a)
		}
	}
	return all
}
