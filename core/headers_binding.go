package core

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// writeBinding writes the headers that describe one limit only. It does not change them if they
// already describe a limit of an outer middleware that binds more. A soft limit replaces none.
func (c *call) writeBinding(w HeaderWriter, style HeaderStyle) {
	at := c.bindingInTime()
	if at < 0 {
		return
	}
	q, v := c.limits[at].ruleLimit, &c.verdicts[at]
	own := oneLimit{limit: int64(c.limits[at].limit.atOnce()), remaining: v.Remaining, reset: waitSeconds(v)}
	outranks := func(present oneLimit, ok bool) bool {
		return ok && (c.limits[at].rule.Soft || v.RetryAfter == 0 && !own.bindsMore(present))
	}
	if style.has(HeadersDraft7) && !outranks(readDraft7(w)) {
		w.Set(headerPolicy, q.draft7)
		c.text = own.appendDraft7(c.text[:0])
		c.setText(w, headerRateLimit)
	}
	if style.has(HeadersXRateLimit) {
		own.reset = ceilSeconds(time.Duration(time.Now().UnixNano()) + wait(v))
	}
	if (style.has(HeadersXRateLimit) || style.has(HeadersXRateLimitDelta)) && !outranks(readXRateLimit(w)) {
		c.writeXRateLimit(w, own)
	}
}

// bindingInTime returns the index of the binding limit among those that the older styles can
// describe, or -1. These styles give each limit a time until its permits are back. A slot of
// Concurrency comes back when its call ends, usually before the caller has read the reply. So
// Concurrency is left out unless the caller has to wait for a slot. So is a block without an end.
func (c *call) bindingInTime() (at int) {
	at = -1
	for i := range c.limits {
		slot := c.limits[i].limit.Algorithm.properties().Slots && c.verdicts[i].RetryAfter == 0
		untimed := slot || c.verdicts[i].RetryAfter == algorithm.Forever
		if c.inHeaders(i) && !untimed && (at < 0 || c.bindsMore(i, at)) {
			at = i
		}
	}
	return at
}

// oneLimit holds the numbers of a limit that the older styles show.
type oneLimit struct{ limit, remaining, reset int64 }

// bindsMore reports whether l leaves the caller fewer permits than other does. If both leave the
// same number, the one with the later reset binds more.
func (l oneLimit) bindsMore(other oneLimit) bool {
	if l.remaining != other.remaining {
		return l.remaining < other.remaining
	}
	return l.reset > other.reset
}

func (l oneLimit) appendDraft7(text []byte) []byte {
	text = strconv.AppendInt(append(text, "limit="...), l.limit, 10)
	text = strconv.AppendInt(append(text, ", remaining="...), l.remaining, 10)
	return strconv.AppendInt(append(text, ", reset="...), l.reset, 10)
}

func (c *call) writeXRateLimit(w HeaderWriter, l oneLimit) {
	c.setNumber(w, headerXLimit, l.limit)
	c.setNumber(w, headerXRemaining, l.remaining)
	c.setNumber(w, headerXReset, l.reset)
}

// readDraft7 returns the numbers in the header that an outer middleware has written. It leaves out
// the limit, which is not compared.
func readDraft7(w HeaderWriter) (l oneLimit, ok bool) {
	_, rest, _ := strings.Cut(firstValue(w, headerRateLimit), ", remaining=")
	if rest == "" {
		return l, false
	}
	remaining, reset, _ := strings.Cut(rest, ", reset=")
	return readOneLimit(remaining, reset)
}

// readXRateLimit is readDraft7 for the X-RateLimit headers.
func readXRateLimit(w HeaderWriter) (l oneLimit, ok bool) {
	remaining := firstValue(w, headerXRemaining)
	if remaining == "" {
		return l, false
	}
	return readOneLimit(remaining, firstValue(w, headerXReset))
}

func readOneLimit(remaining, reset string) (l oneLimit, ok bool) {
	var remainingErr, resetErr error
	l.remaining, remainingErr = strconv.ParseInt(remaining, 10, 64)
	l.reset, resetErr = strconv.ParseInt(reset, 10, 64)
	return l, remainingErr == nil && resetErr == nil
}

// firstValue returns the first value of a header, or "" if there is none or w cannot show it (see
// [HeaderWriter]).
func firstValue(w HeaderWriter, name string) string {
	switch w := w.(type) {
	case http.Header:
		if lines := w[name]; len(lines) > 0 {
			return lines[0]
		}
		return ""
	case interface{ Get(name string) string }:
		return w.Get(name)
	case interface{ Peek(name string) []byte }: // fasthttp's ResponseHeader
		return string(w.Peek(name))
	default:
		return ""
	}
}
