package core

import (
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
	if style == NoHeaders {
		return
	}
	if c.hasSoft {
		c.showsSoft = !c.showsAny()
	}
	if style.has(HeadersDraft10) {
		c.writeDraft10(w)
	}
	if style != HeadersDraft10 {
		c.writeBinding(w, style)
	}
}

// inHeaders reports whether headers have an entry for the limit at i.
func (c *call) inHeaders(i int) bool {
	a := &c.limits[i]
	return (a.shown() || c.showsSoft && a.rule.Soft) && c.verdicts[i].Err == nil && !c.unanswered(i)
}

// showsAny reports whether headers have an entry for any limit.
func (c *call) showsAny() bool {
	for i := range c.limits {
		if c.inHeaders(i) {
			return true
		}
	}
	return false
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
