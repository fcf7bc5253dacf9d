package core

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// HeaderStyle is which headers tell callers their limits; styles combine with |. The zero value is HeadersDraft10.
type HeaderStyle uint8

const (
	// HeadersDraft10 is RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10, an entry for each limit:
	//
	//	RateLimit-Policy: "api";q=100;w=60
	//	RateLimit: "api";r=99;t=62
	//
	// r is what is left; t is how many seconds to wait when refused, and otherwise until all of it is back, which a sliding
	// window promises for at most 1/32 of the window later. A bucket shows its burst and how long that takes to refill.
	HeadersDraft10 HeaderStyle = 1 << iota
	// HeadersDraft7 is the older form of the same two headers, for the limit that binds. Parsers that do not know draft-10 yet
	// (npm's ratelimit-header-parser 0.1.0, say) read this one and X-RateLimit, but neither beside HeadersDraft10.
	//
	//	RateLimit-Policy: 100;w=60
	//	RateLimit: limit=100, remaining=99, reset=60
	HeadersDraft7
	// HeadersXRateLimit is X-RateLimit-Limit, -Remaining and -Reset for the limit that binds, the reset in unix seconds.
	HeadersXRateLimit
	// HeadersXRateLimitDelta is the same with the reset as seconds left, as some gateways send it.
	HeadersXRateLimitDelta
	// NoHeaders sends none of them. Retry-After on a refusal stays.
	NoHeaders
)

// check finds styles that would write one header twice.
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

// Header names in the canonical form of net/http, in which setting them costs no conversion; their case means nothing.
const (
	headerRateLimit  = "Ratelimit"
	headerPolicy     = "Ratelimit-Policy"
	headerXLimit     = "X-Ratelimit-Limit"
	headerXRemaining = "X-Ratelimit-Remaining"
	headerXReset     = "X-Ratelimit-Reset"
)

// writeHeaders tells the caller what was decided. The list headers are added, so that limiters that stack each have their
// entry; the others are set.
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

// bytesAdder is a HeaderWriter that copies what it is given, as fasthttp's do: then the value needs no string of its own.
type bytesAdder interface {
	HeaderWriter
	AddBytesV(name string, value []byte)
}

// writeDraft10 adds the two headers. In an http.Header they are one allocation, unless limiters stack.
func (c *call) writeDraft10(w HeaderWriter) {
	policy := c.draft10Policy()
	c.text = c.appendDraft10(c.text[:0])
	switch w := w.(type) {
	case http.Header:
		if w[headerPolicy] == nil && w[headerRateLimit] == nil {
			lines := &[2]string{policy, string(c.text)}
			w[headerPolicy], w[headerRateLimit] = lines[0:1:1], lines[1:2:2] // so short that who adds a line gets a slice of its own
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

// writeBinding writes the headers that tell of one limit only: the one that binds.
func (c *call) writeBinding(w HeaderWriter, style HeaderStyle) {
	at := c.bindingOf(true)
	binding, v := &c.asked[at], &c.verdicts[at]
	limit := binding.limit.atOnce()
	if style.has(HeadersDraft7) {
		w.Add(headerPolicy, binding.quota.draft7)
		w.Set(headerRateLimit, "limit="+strconv.Itoa(limit)+", remaining="+strconv.FormatInt(v.Remaining, 10)+
			", reset="+strconv.FormatInt(waitSeconds(v), 10))
	}
	if style.has(HeadersXRateLimit) || style.has(HeadersXRateLimitDelta) {
		reset := waitSeconds(v)
		if style.has(HeadersXRateLimit) {
			reset = ceilSeconds(time.Duration(time.Now().UnixNano()) + wait(v))
		}
		w.Set(headerXLimit, strconv.Itoa(limit))
		w.Set(headerXRemaining, strconv.FormatInt(v.Remaining, 10))
		w.Set(headerXReset, strconv.FormatInt(reset, 10))
	}
}

// draft10Policy is the constant of the limit when the call has only one; of several, what an earlier call joined stays, because
// most calls have the same.
func (c *call) draft10Policy() string {
	if len(c.asked) == 1 {
		return c.asked[0].quota.draft10
	}
	c.telling = c.telling[:0]
	for i := range c.asked {
		if c.tells(i) {
			c.telling = append(c.telling, c.asked[i].quota)
		}
	}
	if !slices.Equal(c.telling, c.joined) {
		c.joined, c.policies = append(c.joined[:0], c.telling...), joinPolicies(c.telling)
	}
	return c.policies
}

func joinPolicies(quotas []*quota) string {
	entries := make([]string, len(quotas))
	for i, q := range quotas {
		entries[i] = q.draft10
	}
	return strings.Join(entries, ", ")
}

func (c *call) appendDraft10(text []byte) []byte {
	for i := range c.asked {
		if !c.tells(i) {
			continue
		}
		if len(text) > 0 {
			text = append(text, ", "...)
		}
		v := &c.verdicts[i]
		text = append(text, c.asked[i].quota.label...)
		text = strconv.AppendInt(append(text, ";r="...), v.Remaining, 10)
		if v.RetryAfter > 0 || c.asked[i].limit.Algorithm != Concurrency { // when slots come back nobody knows
			text = strconv.AppendInt(append(text, ";t="...), waitSeconds(v), 10)
		}
	}
	return text
}

// tells says whether headers have an entry for the limit at i.
func (c *call) tells(i int) bool { return c.asked[i].told() && c.verdicts[i].Err == nil }

// waitSeconds is the wait when refused, otherwise the time until all is back, in whole seconds, rounded up.
func waitSeconds(v *algorithm.Verdict) int64 { return ceilSeconds(wait(v)) }

func wait(v *algorithm.Verdict) time.Duration {
	if v.RetryAfter > 0 {
		return micros(v.RetryAfter)
	}
	return micros(v.ResetAfter)
}

// answered says whether the store answered for any of the limits.
func (c *call) answered() bool {
	for i := range c.asked {
		if c.tells(i) {
			return true
		}
	}
	return false
}
