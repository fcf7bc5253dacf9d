package harness

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Spread is the result of several rounds: their median, and its 95 % confidence interval.
type Spread struct{ Median, Low, High float64 }

// SpreadOf returns the spread of the values, ignoring NaNs. It returns a spread of NaN if nothing
// else is left. A value is as likely to be above the true median as below it, so the number of
// rounds alone decides which values bound the interval (the sign test). With fewer than eight
// rounds, the bounds are the minimum and the maximum.
func SpreadOf(values []float64) Spread {
	sorted := slices.DeleteFunc(slices.Sorted(slices.Values(values)), math.IsNaN)
	n := len(sorted)
	if n == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	outside := max(0, int((float64(n)-1.96*math.Sqrt(float64(n)))/2))
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[outside], sorted[n-1-outside]}
}

// Values returns one number for each round.
func Values[T any](rounds []T, number func(T) float64) []float64 {
	values := make([]float64, len(rounds))
	for i, round := range rounds {
		values[i] = number(round)
	}
	return values
}

// Pairs returns the spread of the ratio a/b within each round. Ratios vary less than figures,
// because a slow moment of the machine slows down both.
func Pairs(a, b []float64) Spread {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = Ratio(a[i], b[i])
	}
	return SpreadOf(ratios)
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

// String formats a spread, such as 1.24 (1.19..1.31), or "-" for NaN.
func (s Spread) String() string { return s.In("") }

// In formats a spread of figures in a unit, such as 1.24x (1.19..1.31).
func (s Spread) In(unit string) string {
	switch median := Number(s.Median); {
	case median == "-":
		return median
	case s.Low == s.High:
		return median + unit
	default:
		return fmt.Sprintf("%s%s (%s..%s)", median, unit, Number(s.Low), Number(s.High))
	}
}
