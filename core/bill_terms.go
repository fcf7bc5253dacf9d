package core

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// BillTerms are the terms of costs that are known afterwards, of a counter or a [Rule]. The zero BillTerms have the
// defaults.
type BillTerms struct {
	// Expires is the time in which a bill can be settled: 1 s to 366 days, by default an hour. A bill
	// that is not settled by then stays at what it was charged.
	Expires time.Duration
	// MaxDebt bounds the debt of each limit, as a multiple of its Max, or of the Burst of a
	// TokenBucket: up to 10, by default 1.
	MaxDebt float64
	// MaxEstimate is the largest part of the smallest limit that [Counter.Open] or Rule.Estimate
	// charges, up to 1: a larger estimate is cut to it, or to that part of an override if the override is smaller.
	// Set it, to 0.25 perhaps, if estimates are guesses, so that a wrong one neither fails nor keeps
	// everyone else out. By default nothing is cut, and an estimate above a limit is
	// [ErrCostExceedsLimit], or 400 by a rule. A rule that refuses nobody is not cut to an override.
	MaxEstimate float64
}

// String returns the terms that are not the defaults, such as "at most 0.25 of a limit, debts of 2 limits".
func (b BillTerms) String() string {
	var all []string
	if b.MaxEstimate != 0 {
		all = append(all, fmt.Sprintf("at most %v of a limit", b.MaxEstimate))
	}
	if b.MaxDebt != 0 {
		all = append(all, fmt.Sprintf("debts of %v limits", b.MaxDebt))
	}
	if b.Expires != 0 {
		all = append(all, "until "+terms.Span(b.Expires)+" later")
	}
	return strings.Join(all, ", ")
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
func (b BillTerms) wrong(name string) *RuleError {
	switch {
	case b.Expires < time.Second || b.Expires > algorithm.MaxWindow*time.Microsecond:
		return &RuleError{Rule: name, Field: "Expires", Value: b.Expires, Why: "must be 1s to 8784h"}
	case !isDebtShare(b.MaxDebt):
		return &RuleError{Rule: name, Field: "MaxDebt", Value: b.MaxDebt, Why: "must be more than 0, and at most 10"}
	case !(b.MaxEstimate >= 0 && b.MaxEstimate <= 1):
		return &RuleError{Rule: name, Field: "MaxEstimate", Value: b.MaxEstimate, Why: "must be 0 to 1"}
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

// largestCharge returns the part of a cost that counters are asked to charge: more than any of them
// can.
func largestCharge(n int) int64 { return min(int64(n), algorithm.MaxInUse+1) }
