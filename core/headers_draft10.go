package core

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// writeDraft10 adds RateLimit and RateLimit-Policy, unless the store answered for none of the
// limits.
func (c *call) writeDraft10(w HeaderWriter) {
	c.text = c.appendDraft10(c.text[:0])
	if len(c.text) == 0 {
		return
	}
	policy := c.draft10Policy()
	switch w := w.(type) {
	case http.Header:
		text := c.values.keep(c.text)
		if len(w) == 0 { // looking for earlier lines would take a tenth of a call
			w[headerPolicy], w[headerRateLimit] = c.values.single(policy), c.values.single(text)
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

// draft10Policy returns the value of RateLimit-Policy. For one limit, that is a constant. For
// several limits, it is the text of the last such call if that call had the same limits, as most
// calls do.
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
		// A slot has no known time at which it comes back, nor has a block an end that nobody set.
		if v.RetryAfter == algorithm.Forever {
			continue
		}
		if v.RetryAfter > 0 || !c.limits[i].limit.Algorithm.properties().Slots {
			text = strconv.AppendInt(append(text, ";t="...), waitSeconds(v), 10)
		}
	}
	return text
}
