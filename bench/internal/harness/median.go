package harness

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Spread is the result of several rounds: the median, the least and the largest.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf returns the spread of the values, or NaN if there are none. The median of an even number
// is the mean of the two in the middle.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// SpreadBy returns the spread of one number of each round.
func SpreadBy[T any](rounds []T, number func(T) float64) Spread {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = number(round)
	}
	return SpreadOf(values)
}

// Ratio returns a/b, or NaN if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Shuffled returns the numbers below n in random order. Each round has its own order, so that no
// rival always follows the same one.
func Shuffled(n int) []int { return rand.Perm(n) }

// Number formats a figure for readers: about three digits, thousands as k and millions as M, and
// "-" for NaN.
func Number(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v == 0:
		return "0"
	case abs >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case abs >= 10_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case abs >= 100:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Times formats a ratio, such as 1.24x.
func Times(v float64) string {
	if n := Number(v); n != "-" {
		return n + "x"
	}
	return "-"
}
