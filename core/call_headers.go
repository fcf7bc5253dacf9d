package core

import (
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
)

// writeHeaders tells the caller what was decided.
func (c *call) writeHeaders(w adapter.HeaderWriter) {
	if c.headers.Style == limitheader.None {
		return
	}
	for i := range c.Len() {
		if v := c.Verdict(i); v.Err == nil && c.IsTold(i) {
			c.headers.Add(limitheader.Limit{
				Policy: &c.preparedAt(i).policy, Verdict: v, Size: int64(c.limitAt(i).atOnce()),
				Refused: c.Counter(i).Refuses(v), Soft: c.Limit(i).Rule.Mode == engine.Soft,
			})
		}
	}
	c.headers.Write(w)
}
