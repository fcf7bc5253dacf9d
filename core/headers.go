package core

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// HeaderStyle is a set of headers that tell callers their limits. Styles combine with |. The zero
// value is HeadersDraft10.
type HeaderStyle uint8

const (
	// HeadersDraft10 is RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10,
	// with an entry for each limit:
	//
	//	RateLimit-Policy: "api";q=100;w=60
	//	RateLimit: "api";r=99;t=62
	//
	// r is the permits left. In a refusal, t is the seconds to wait. Otherwise it is the seconds
	// until all permits are back, which with a sliding window takes up to 1/32 of the window
	// longer. A bucket shows its burst, and the time that it takes to refill.
	HeadersDraft10 HeaderStyle = 1 << iota
	// HeadersDraft7 is the older form of the same two headers, for the limit that binds: of all
	// middlewares around a handler, the one with the fewest permits left. Concurrency is left out
	// until it refuses a call, because this form gives each limit a time to wait. Parsers that do
	// not know draft-10 yet (such as npm's ratelimit-header-parser 0.1.0) read this form and
	// X-RateLimit, but neither beside HeadersDraft10.
	//
	//	RateLimit-Policy: 100;w=60
	//	RateLimit: limit=100, remaining=99, reset=60
	HeadersDraft7
	// HeadersXRateLimit is X-RateLimit-Limit, -Remaining and -Reset for the same limit as in
	// HeadersDraft7, with the reset in unix seconds.
	HeadersXRateLimit
	// HeadersXRateLimitDelta is the same with the reset as seconds left, as some gateways send it.
	HeadersXRateLimitDelta
	// NoHeaders sends none of them. Retry-After on a refusal stays.
	NoHeaders
)

// check returns an error if two of the styles write the same header.
func (s HeaderStyle) check() error {
	wrong := func(why string) error {
		return &RuleError{Field: "Options.Headers", Value: uint8(s), Why: why}
	}
	switch {
	case s >= NoHeaders<<1:
		return wrong("is none of this package's styles")
	case s&NoHeaders != 0 && s != NoHeaders:
		return wrong("NoHeaders goes with no other style")
	case s.has(HeadersDraft10) && s.has(HeadersDraft7):
		return wrong("HeadersDraft10 and HeadersDraft7 write the same headers: choose one")
	case s.has(HeadersXRateLimit) && s.has(HeadersXRateLimitDelta):
		return wrong("HeadersXRateLimit and HeadersXRateLimitDelta write the same headers: choose one")
	}
	return nil
}

func (s HeaderStyle) has(style HeaderStyle) bool { return s&style != 0 }

// The names of headers are in the canonical form of net/http, so that setting them needs no
// conversion. Their case has no meaning.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerXLimit     = "X-Ratelimit-Limit"
	headerXRemaining = "X-Ratelimit-Remaining"
	headerXReset     = "X-Ratelimit-Reset"
)

// writeHeaders tells the caller what was decided. The list headers are added, so that limiters that
// stack each have their entry; the others describe the limit that binds most.
func (c *call) writeHeaders(w HeaderWriter) {
	style := c.limiter.headers
	if style == NoHeaders || !c.answered() {
		return
	}
	if style.has(HeadersDraft10) {
		c.writeDraft10(w)
	}
	if style != HeadersDraft10 {
		c.writeBinding(w, style)
	}
}

// bytesAdder is a HeaderWriter that copies the bytes it is given, as fasthttp's do, so that the
// value needs no string of its own.
type bytesAdder interface {
	HeaderWriter
	AddBytesV(name string, value []byte)
}

// writeDraft10 adds the two headers. In an http.Header they are one allocation, unless limiters
// stack.
func (c *call) writeDraft10(w HeaderWriter) {
	policy := c.draft10Policy()
	c.text = c.appendDraft10(c.text[:0])
	switch w := w.(type) {
	case http.Header:
		if w[headerPolicy] == nil && w[headerRateLimit] == nil {
			lines := &[2]string{policy, string(c.text)}
			// The slices have no spare room, so appending a line to one does not change the other.
			w[headerPolicy], w[headerRateLimit] = lines[0:1:1], lines[1:2:2]
			return
		}
	case bytesAdder:
		w.Add(headerPolicy, policy)
		w.AddBytesV(headerRateLimit, c.text)
		return
	}
	w.Add(headerPolicy, policy)
	w.Add(headerRateLimit, string(c.text))
}

// writeBinding writes the headers that have room for one limit only. It leaves them alone if a
// middleware around this one has described a limit that binds more.
func (c *call) writeBinding(w HeaderWriter, style HeaderStyle) {
	at := c.bindingInTime()
	if at < 0 {
		return
	}
	q, v := c.limits[at].ruleLimit, &c.verdicts[at]
	told := oneLimit{limit: int64(c.limits[at].limit.atOnce()), remaining: v.Remaining, reset: waitSeconds(v)}
	outranks := func(there oneLimit, ok bool) bool { return ok && v.RetryAfter == 0 && !told.bindsMore(there) }
	if style.has(HeadersDraft7) && !outranks(readDraft7(w)) {
		w.Set(headerPolicy, q.draft7)
		w.Set(headerRateLimit, told.draft7())
	}
	if style.has(HeadersXRateLimit) {
		told.reset = ceilSeconds(time.Duration(time.Now().UnixNano()) + wait(v))
	}
	if (style.has(HeadersXRateLimit) || style.has(HeadersXRateLimitDelta)) && !outranks(readXRateLimit(w)) {
		told.writeXRateLimit(w)
	}
}

// bindingInTime returns the place of the binding limit among those that the older styles can
// describe, or -1. These styles give each limit a time until its permits are back. A slot of
// Concurrency comes back when its call ends, usually before the caller has read the reply, so it is
// left out unless a caller has to wait for one.
func (c *call) bindingInTime() (at int) {
	at = -1
	for i := range c.limits {
		slot := c.limits[i].limit.Algorithm.properties().Slots && c.verdicts[i].RetryAfter == 0
		if c.inHeaders(i) && !slot && (at < 0 || c.bindsMore(i, at)) {
			at = i
		}
	}
	return at
}

// oneLimit holds what the older styles say about a limit.
type oneLimit struct{ limit, remaining, reset int64 }

// bindsMore reports whether l leaves a caller less than other does. If both leave the same, the
// later reset binds.
func (l oneLimit) bindsMore(other oneLimit) bool {
	if l.remaining != other.remaining {
		return l.remaining < other.remaining
	}
	return l.reset > other.reset
}

func (l oneLimit) draft7() string {
	return "limit=" + strconv.FormatInt(l.limit, 10) + ", remaining=" + strconv.FormatInt(l.remaining, 10) +
		", reset=" + strconv.FormatInt(l.reset, 10)
}

func (l oneLimit) writeXRateLimit(w HeaderWriter) {
	w.Set(headerXLimit, strconv.FormatInt(l.limit, 10))
	w.Set(headerXRemaining, strconv.FormatInt(l.remaining, 10))
	w.Set(headerXReset, strconv.FormatInt(l.reset, 10))
}

// readDraft7 returns what a middleware around this one has written, without the limit, which is not
// compared.
func readDraft7(w HeaderWriter) (l oneLimit, ok bool) {
	_, rest, _ := strings.Cut(written(w, headerRateLimit), ", remaining=")
	remaining, reset, _ := strings.Cut(rest, ", reset=")
	return readOneLimit(remaining, reset)
}

// readXRateLimit is readDraft7 for the other style.
func readXRateLimit(w HeaderWriter) (l oneLimit, ok bool) {
	return readOneLimit(written(w, headerXRemaining), written(w, headerXReset))
}

func readOneLimit(remaining, reset string) (l oneLimit, ok bool) {
	if remaining == "" {
		return l, false
	}
	var wrong, wrongToo error
	l.remaining, wrong = strconv.ParseInt(remaining, 10, 64)
	l.reset, wrongToo = strconv.ParseInt(reset, 10, 64)
	return l, wrong == nil && wrongToo == nil
}

// written returns the first value of a header that was written before, or "" if w cannot show it
// (see [HeaderWriter]).
func written(w HeaderWriter, name string) string {
	switch w := w.(type) {
	case interface{ Get(name string) string }: // http.Header
		return w.Get(name)
	case interface{ Peek(name string) []byte }: // fasthttp's ResponseHeader
		return string(w.Peek(name))
	default:
		return ""
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

// inHeaders reports whether headers have an entry for the limit at i.
func (c *call) inHeaders(i int) bool {
	return c.limits[i].shown() && c.verdicts[i].Err == nil && !c.unanswered(i)
}

// waitSeconds returns the wait if the call was refused, and otherwise the time until all permits
// are back, in whole seconds, rounded up.
func waitSeconds(v *algorithm.Verdict) int64 { return ceilSeconds(wait(v)) }

func wait(v *algorithm.Verdict) time.Duration {
	if v.RetryAfter > 0 {
		return micros(v.RetryAfter)
	}
	return micros(v.ResetAfter)
}

// answered reports whether the store answered for any of the limits.
func (c *call) answered() bool {
	for i := range c.limits {
		if c.inHeaders(i) {
			return true
		}
	}
	return false
}
