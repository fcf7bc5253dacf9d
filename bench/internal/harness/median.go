package harness

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Spread is what several rounds found: the median, and between what they lay.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf is the spread of some values, not a number of none. The median of an even number is the
// mean of the two in the middle.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// SpreadBy is the spread of one number of each round.
func SpreadBy[T any](rounds []T, number func(T) float64) Spread {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = number(round)
	}
	return SpreadOf(values)
}

// Ratio is a/b, and not a number where b is nothing.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Shuffled is the numbers below n in random order. Each round has another, so that no rival always
// comes after the same one.
func Shuffled(n int) []int { return rand.Perm(n) }

// Number writes a figure as it is read: about three digits, thousands as k and millions as M, "-"
// where there is none.
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

// Times writes a ratio: 1.24x.
func Times(v float64) string {
	if n := Number(v); n != "-" {
		return n + "x"
	}
	return "-"
}
