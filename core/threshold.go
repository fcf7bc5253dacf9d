package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

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

// maxWarn is the largest number of fractions in Rule.Warn.
const maxWarn = 4

// checkWarn checks Warn, and what does not go with it.
func (c *ruleCheck) checkWarn() {
	if len(c.Warn) > maxWarn {
		c.add("Warn", "warn_many", c.Warn, "must be at most 4 fractions")
	}
	if len(c.Warn) > 0 && c.Lease != 0 {
		c.add("Lease", "lease_and_warn", c.Lease, "cannot be combined with Warn: calls with leased permits do not ask Redis, so they would pass a threshold unseen")
	}
	for i, fraction := range c.Warn {
		switch {
		case !(0 < fraction && fraction <= 1): // also NaN
			c.add("Warn", "warn_range", c.Warn, "must be fractions above 0 and up to 1, such as 0.8 for 80 %")
			return
		case i > 0 && fraction <= c.Warn[i-1]:
			c.add("Warn", "warn_order", c.Warn, "must be in ascending order")
			return
		}
	}
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
