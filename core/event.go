package core

import (
	"context"
	"net/netip"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// Event is a decision and the call that it is about. Options.OnDecision receives it. Its strings
// are copies and may be kept. Fields may be added later.
type Event struct {
	Decision Decision
	// Method, Route and Path are those of the call, as in [Request], or "" for a direct call.
	Method, Route, Path string
	// ClientIP is the caller's address as Options.ClientIP finds it, or the zero Addr for a direct
	// call and for a caller without an address.
	ClientIP netip.Addr
}

// Threshold reports that a subject has used a fraction of a limit: see [Rule].Warn.
// Options.OnThreshold receives it. Its strings are copies and may be kept. Fields may be added
// later.
type Threshold struct {
	// Rule is the name of the rule, and Key the subject, such as user:alice.
	Rule, Key string
	// Limit is the limit in force: the rule's own, one of Also, that of a plan, or an override.
	Limit Limit
	// Fraction is the entry of Warn that was reached.
	Fraction float64
	// Used is how much of the limit was in use after the call that reached it. For a TokenBucket it
	// counts against Burst, as the headers do.
	Used int
	// ResetAfter is the time from then until all permits are back, if nobody uses more.
	ResetAfter time.Duration
	// Time is when the call was charged, by the clock that counts.
	Time time.Time
}

// thresholdReports returns what passes reports to a service's function, or nil if there is none.
func thresholdReports(receive func(context.Context, Threshold)) func(context.Context, thresholds.Reached[Limit]) {
	if receive == nil {
		return nil
	}
	return func(ctx context.Context, r thresholds.Reached[Limit]) {
		receive(ctx, Threshold{
			Rule: r.Rule, Key: r.Subject, Limit: r.Limit, Fraction: r.Fraction, Used: permitsOf(r.Used),
			ResetAfter: micros(r.ResetAfter), Time: time.UnixMicro(r.At),
		})
	}
}
