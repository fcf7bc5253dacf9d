package core

import "github.com/accesslimit/accesslimit/core/internal/limitheader"

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
	HeadersDraft10 = HeaderStyle(limitheader.Draft10)
	// HeadersDraft11 is the same two headers as draft-ietf-httpapi-ratelimit-headers-11 has them:
	//
	//	RateLimit-Policy: "api";q=100;w=60
	//	RateLimit: "api";r=99;t=61
	//
	// While permits are left, t is the seconds within which no further one comes back, rounded
	// down: nobody can use more than r in that time. If none is left, t is the seconds to wait,
	// rounded up. It is left out if it would be 0 or is not known, as it is in a refusal for limits
	// with permits left. If [CostBySize] computed the cost of the call, q and r are bytes:
	//
	//	RateLimit-Policy: "upload";q=1048576;qu="content-bytes";w=60
	HeadersDraft11 = HeaderStyle(limitheader.Draft11)
	// HeadersDraft7 is the older form of the same two headers, for the limit that binds: of all
	// middlewares around a handler, the one with the fewest permits left. Concurrency is left out
	// until it refuses a call, because this form gives each limit a time to wait. Parsers that do
	// not know draft-10 yet (such as npm's ratelimit-header-parser 0.1.0) read this form and
	// X-RateLimit, but neither beside HeadersDraft10 or HeadersDraft11.
	//
	//	RateLimit-Policy: 100;w=60
	//	RateLimit: limit=100, remaining=99, reset=60
	HeadersDraft7 = HeaderStyle(limitheader.Draft7)
	// HeadersXRateLimit is X-RateLimit-Limit, -Remaining and -Reset for the same limit as in
	// HeadersDraft7, with the reset in unix seconds.
	HeadersXRateLimit = HeaderStyle(limitheader.XRateLimit)
	// HeadersXRateLimitDelta is the same with the reset as seconds left, as some gateways send it.
	HeadersXRateLimitDelta = HeaderStyle(limitheader.XRateLimitDelta)
	// NoHeaders sends none of them. Retry-After on a refusal stays.
	NoHeaders = HeaderStyle(limitheader.None)
)
