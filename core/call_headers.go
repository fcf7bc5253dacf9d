package core

import (
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
)

// writeHeaders tells the caller what was decided.
func (c *call) writeHeaders(w HeaderWriter) {
	if c.headers.Style == limitheader.None {
		return
	}
	for i := range c.Len() {
		a, v := c.Limit(i), c.Verdict(i)
		soft := a.Rule.Mode == engine.Soft
		if (a.Shown() || soft) && v.Err == nil && !c.Unanswered(i) {
			c.headers.Add(limitheader.Limit{
				Policy: &c.preparedAt(i).policy, Verdict: v, Size: int64(c.limitAt(i).atOnce()),
				Refused: c.Counter(i).Refuses(v), Soft: soft,
			})
		}
	}
	c.headers.Write(w)
}
