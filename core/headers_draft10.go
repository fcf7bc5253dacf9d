package core

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// writeDraft10 adds the two headers, unless the store answered for none of the limits.
func (c *call) writeDraft10(w HeaderWriter) {
	c.text = c.appendDraft10(c.text[:0])
	if len(c.text) == 0 {
		return
	}
	policy := c.draft10Policy()
	switch w := w.(type) {
	case http.Header:
		text := c.values.keep(c.text)
		if len(w) == 0 { // nothing to look for, which would take a tenth of a call
			w[headerPolicy], w[headerRateLimit] = c.values.of(policy), c.values.of(text)
			return
		}
		c.values.add(w, headerPolicy, policy)
		c.values.add(w, headerRateLimit, text)
	case textAdder:
		w.Add(headerPolicy, policy)
		w.AddBytesV(headerRateLimit, c.text)
	default:
		w.Add(headerPolicy, policy)
		w.Add(headerRateLimit, string(c.text))
	}
}

// draft10Policy returns the value of RateLimit-Policy. It is a constant of the limit if the call
// has only one. For several limits, the text of an earlier call is used again if it had the same,
// as most calls do.
func (c *call) draft10Policy() string {
	if len(c.limits) == 1 {
		return c.limits[0].ruleLimit.draft10
	}
	c.headerLimits = c.headerLimits[:0]
	for i := range c.limits {
		if c.inHeaders(i) {
			c.headerLimits = append(c.headerLimits, c.limits[i].ruleLimit)
		}
	}
	if !slices.Equal(c.headerLimits, c.joinedLimits) {
		c.joinedLimits, c.joinedPolicy = append(c.joinedLimits[:0], c.headerLimits...), joinPolicies(c.headerLimits)
	}
	return c.joinedPolicy
}

func joinPolicies(limits []*ruleLimit) string {
	entries := make([]string, len(limits))
	for i, q := range limits {
		entries[i] = q.draft10
	}
	return strings.Join(entries, ", ")
}

func (c *call) appendDraft10(text []byte) []byte {
	for i := range c.limits {
		if !c.inHeaders(i) {
			continue
		}
		if len(text) > 0 {
			text = append(text, ", "...)
		}
		v := &c.verdicts[i]
		text = append(text, c.limits[i].ruleLimit.label...)
		text = strconv.AppendInt(append(text, ";r="...), v.Remaining, 10)
		// Nobody knows when slots come back.
		if v.RetryAfter > 0 || !c.limits[i].limit.Algorithm.properties().Slots {
			text = strconv.AppendInt(append(text, ";t="...), waitSeconds(v), 10)
		}
	}
	return text
}
