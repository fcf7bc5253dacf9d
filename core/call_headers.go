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
			l := c.headers.Add()
			l.Policy, l.Verdict, l.Size = &c.preparedAt(i).policy, v, int64(c.limitAt(i).atOnce())
			l.Refused, l.Soft = c.Counter(i).Refuses(v), c.Limit(i).Rule.Mode == engine.Soft
		}
	}
	c.headers.Write(w)
}
