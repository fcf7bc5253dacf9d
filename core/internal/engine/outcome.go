package engine

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// Outcome is what a limit decides of a call, and why.
type Outcome uint8

// The outcomes. A call passes by Allowed, DryRunExceeded, SoftExceeded and StoreFailOpen only.
const (
	Allowed Outcome = iota
	LimitExceeded
	Banned
	Blocked
	DryRunExceeded
	SoftExceeded
	StoreFailOpen
	StoreFailClosed
)

// Outcome returns what the limit at i decides. Its source is that of the verdict, but nobody for a
// store that failed.
func (c *Call) Outcome(i int) Outcome {
	a, v := &c.limits[i], &c.verdicts[i]
	switch {
	case v.Err == nil && v.RetryAfter == 0:
		return Allowed
	case v.Err != nil && c.counters[i].Refuses(v):
		return StoreFailClosed
	case v.Err != nil:
		return StoreFailOpen
	case a.Rule.Mode == DryRun:
		return DryRunExceeded
	case a.Rule.Mode == Soft:
		return SoftExceeded
	case v.Blocked:
		return Blocked
	case a.Banned:
		return Banned
	default:
		return LimitExceeded
	}
}

// Source returns what decided about the limit at i.
func (c *Call) Source(i int) algorithm.Origin {
	if v := &c.verdicts[i]; v.Err == nil {
		return v.From
	}
	return algorithm.FromNobody
}

// ReportBans makes bans that the store did not answer for report themselves. No other limit does.
func (c *Call) ReportBans() {
	for i := range c.limits {
		if a, v := &c.limits[i], &c.verdicts[i]; a.IsBan && v.Err != nil && c.counters[i].Refuses(v) {
			a.Banned = true
		}
	}
}
