package core

import "github.com/accesslimit/accesslimit/core/internal/thresholds"

// What is noticed on the way of a call is passed on to the parts that report or list it.

// logStoreFailures logs the rules for which the store did not answer, once for each.
func (c *call) logStoreFailures() {
	for i := range c.limits {
		a, v := &c.limits[i], &c.verdicts[i]
		err := v.Failure()
		if err == nil || i > 0 && c.limits[i-1].rule == a.rule && c.verdicts[i-1].Failure() != nil {
			continue
		}
		c.limiter.failures.failed(a.named.name, a.rule.OnStoreError.or(FailOpen).String(), err)
	}
}

// noteBan passes on the ban at i, so that it is listed.
func (c *call) noteBan(i int) {
	if a := &c.limits[i]; !a.rule.DryRun {
		c.limiter.bans.Saw(c.counters[i].Key, a.named.name, c.subjects[a.from:a.to], &c.verdicts[i])
	}
}

// warn reports the thresholds that the charges of a call have reached. It is called for calls that
// passed.
func (c *call) warn() {
	for i := range c.limits {
		a := &c.limits[i]
		warn := a.warnings()
		if len(warn) == 0 {
			continue
		}
		c.limiter.thresholds.Charged(&thresholds.Charge{
			Rule: a.named.name, DryRun: a.rule.DryRun, Subject: c.subjects[a.from:a.to], Warn: warn, Max: a.limit.Max,
		}, func() Limit { return *a.limit }, &c.counters[i], &c.verdicts[i])
	}
}

// warnings returns the fractions of the limit that are reported.
func (a *callLimit) warnings() []float64 {
	if a.warn != nil {
		return a.warn
	}
	return a.rule.Warn
}
