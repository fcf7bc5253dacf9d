package core

import (
	"math"
	"reflect"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// BillTerms are the terms of a counter's costs that are known afterwards. The zero BillTerms have the
// defaults.
type BillTerms struct {
	// Expires is the time in which a bill can be settled: 1 s to 366 days, by default an hour. A bill
	// that is not settled by then stays at what it was charged.
	Expires time.Duration
	// MaxDebt bounds the debt of each limit, as a multiple of its Max, or of the Burst of a
	// TokenBucket: up to 10, by default 1.
	MaxDebt float64
	// MaxEstimate is the largest part of the counter's smallest limit that [Counter.Open] charges, up
	// to 1: a larger estimate is cut to it, or to that part of an override if the override is smaller.
	// Set it, to 0.25 perhaps, if estimates are guesses, so that a wrong one neither fails nor keeps
	// everyone else out. By default nothing is cut, and an estimate above a limit is
	// [ErrCostExceedsLimit]. A rule that refuses nobody is not cut to an override.
	MaxEstimate float64
}

// filled returns the terms with their defaults filled in.
func (b BillTerms) filled() BillTerms {
	if b.Expires == 0 {
		b.Expires = time.Hour
	}
	if b.MaxDebt == 0 {
		b.MaxDebt = 1
	}
	return b
}

// wrong returns what is wrong with filled terms, or nil.
func (b BillTerms) wrong(name string) error {
	switch {
	case b.Expires < time.Second || b.Expires > algorithm.MaxWindow*time.Microsecond:
		return wrongArgument(name, "Expires", b.Expires, "must be 1s to 8784h")
	case !isDebtShare(b.MaxDebt):
		return wrongArgument(name, "MaxDebt", b.MaxDebt, "must be more than 0, and at most 10")
	case !(b.MaxEstimate >= 0 && b.MaxEstimate <= 1):
		return wrongArgument(name, "MaxEstimate", b.MaxEstimate, "must be 0 to 1")
	}
	return nil
}

// isDebtShare reports whether a multiple of a limit can bound its debt. NaN cannot.
func isDebtShare(multiple float64) bool { return multiple > 0 && multiple <= 10 }

// cut returns an estimate, or the largest one that the terms allow if most is the largest cost that
// fits into the limits.
func (b *BillTerms) cut(estimate, most int64) int64 {
	if b.MaxEstimate == 0 {
		return estimate
	}
	return min(estimate, int64(max(1, math.Floor(float64(most)*b.MaxEstimate))))
}

// Estimate returns a [Rule].Cost for a cost that is known only when the handler has run. A call is
// charged what cost returns, or 1 if cost is nil, and the handler settles it by [Settle]:
//
//	core.Rule{Name: "tokens", Limit: core.PerMinute(100_000), Cost: core.BillTerms{}.Estimate(largest)}
//
// The rule cannot have a Lease, and its limits are by SlidingWindow, FixedWindow, CalendarWindow or
// TokenBucket, with slots beside them. Refund of its decisions is an error. Expires has no effect here,
// because a call is settled before its reply ends. Set Cost to what Estimate returns: a function around
// that is an ordinary cost, which nobody can settle. Estimate panics with a *[RuleError] if the terms
// are wrong.
//
//go:noinline // or isEstimate would not know its functions
func (b BillTerms) Estimate(cost func(Request) int) func(Request) int {
	terms := b.filled()
	if err := terms.wrong(""); err != nil {
		panic(err)
	}
	return func(r Request) int {
		if question, ok := r.(*termsQuestion); ok {
			question.terms = &terms
			return 0
		}
		if cost == nil {
			return 1
		}
		return cost(r)
	}
}

// termsQuestion asks a function of Estimate for its terms.
type termsQuestion struct {
	Request
	terms *BillTerms
}

// termsOf returns the terms of a cost that is an estimate, otherwise nil.
func termsOf(cost func(Request) int) *BillTerms {
	if !isEstimate(cost) {
		return nil
	}
	var question termsQuestion
	cost(&question)
	return question.terms
}

// isEstimate reports whether Estimate returned a function.
func isEstimate(cost func(Request) int) bool { return haveSameCode(cost, anEstimate) }

var anEstimate = BillTerms{}.Estimate(nil)

// haveSameCode reports whether one function literal made both of two functions, whatever each has
// captured.
func haveSameCode(a, b func(Request) int) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// largestCharge returns the part of a cost that counters are asked to charge: more than any of them
// can.
func largestCharge(n int) int64 { return min(int64(n), algorithm.MaxInUse+1) }
