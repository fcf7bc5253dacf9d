package core

import "github.com/accesslimit/accesslimit/core/internal/limitheader"

// writeHeaders tells the caller what was decided.
func (c *call) writeHeaders(w HeaderWriter) {
	if c.headers.Style == limitheader.None {
		return
	}
	for i := range c.limits {
		a, v := &c.limits[i], &c.verdicts[i]
		if (a.shown() || a.rule.Soft) && v.Err == nil && !c.unanswered(i) {
			c.headers.Add(limitheader.Limit{
				Policy: &a.ruleLimit.policy, Verdict: v, Size: int64(a.limit.atOnce()),
				Refused: c.counters[i].Refuses(v), Soft: a.rule.Soft,
			})
		}
	}
	c.headers.Write(w)
}
