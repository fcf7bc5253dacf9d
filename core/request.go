package core

import (
	"context"
	"net/netip"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// Request is the view of one call that key functions, costs, identifiers and replies read. It is
// valid during the call only. Copy its strings before you keep them, because a framework may reuse
// their memory for another call.
type Request interface {
	// Context returns the call's own context.
	Context() context.Context
	// Method returns the HTTP method, or "" for gRPC.
	Method() string
	// Path returns the path as the framework routes it, or the full method for gRPC.
	Path() string
	// Route returns the pattern that the framework matched, or "" while it is not known.
	Route() string
	// RemoteAddr returns the address of the connection's peer, which may be a proxy, or the zero
	// Addr for a unix socket. For the caller's address, use ClientIP.
	RemoteAddr() netip.Addr
	// ClientIP returns the caller's address as Options.ClientIP finds it, or the zero Addr if there
	// is none. To count by it use [ByIP] or [Limiter.IPSubject]. Counting by its String would count each of
	// the many IPv6 addresses of one caller by itself.
	ClientIP() netip.Addr
	// Host returns the host that the call was made to, in lower case, without port and trailing
	// dot, or "" if there is none. Callers choose it.
	Host() string
	// Header returns every value of a request header, in order. Host is a header in every
	// framework, in lower case and with its port. Danger: callers can send a header twice, and the
	// getters of frameworks return the first value, so count by that.
	Header(name string) []string
	// Query returns the first value of a parameter of the URL's query, or "".
	Query(name string) string
	// Param returns the text that a named wildcard of the route matched, or "", as the framework's own
	// getter does: chi, echo and fiber do not decode it. A middleware of a whole router may run before
	// it is known.
	Param(name string) string
	// Cookie returns the value of the first cookie of this name, as the framework's own getter
	// does, or "" if there is none.
	Cookie(name string) string
	// Value returns the value that an earlier middleware left under this key, or nil.
	Value(key any) any
	// Size returns the length of the body in bytes, or -1 if it is not known.
	Size() int64
	// User returns the user that Options.Identify found, or "" for nobody. It runs Identify at most
	// once a call, and returns its error.
	User() (string, error)
	// Rule returns the name of the rule that is being decided, or "" outside of one.
	Rule() string
}

// Event is a decision and the call that it is about. Options.OnDecision receives it. Its strings
// are copies and may be kept. Fields may be added later.
type Event struct {
	Decision Decision
	// Method, Route and Path are those of the call, as in [Request], or "" for a direct call.
	Method, Route, Path string
	// ClientIP is the caller's address as Options.ClientIP finds it, or the zero Addr for a direct
	// call and for a caller without an address.
	ClientIP netip.Addr
	// DryRun reports whether the decision is that of a rule in [DryRun]. Delay is how long after the
	// answer to the call it was made; without Redis, that is 0.
	DryRun bool
	Delay  time.Duration
	// Outgoing reports whether the call goes out: see package outgoing. Waited is how long such a call
	// has waited for its turn. ByServer reports that the server refused it because of a limit, after
	// this service had sent it. The Decision then has no Reason, and its RetryAfter is what the server
	// asked for, if it did.
	Outgoing, ByServer bool
	Waited             time.Duration
}

// Threshold reports that a subject has used a fraction of a limit: see [Rule].Warn.
// Options.OnThreshold receives it. Its strings are copies and may be kept. Fields may be added
// later.
type Threshold struct {
	// Rule is the name of the rule, and Key the subject, such as user:alice.
	Rule, Key string
	// Limit is the limit in force: the rule's own, one of Also, that of a plan, or an override.
	Limit Limit
	// Fraction is the entry of Warn that was reached.
	Fraction float64
	// Used is how much of the limit was in use after the call that reached it. For a TokenBucket it
	// counts against Burst, as the headers do.
	Used int
	// ResetAfter is the time from then until all permits are back, if nobody uses more.
	ResetAfter time.Duration
	// Time is when the call was charged, by the clock that counts.
	Time time.Time
}

// thresholdReports returns what passes reports to a service's function, or nil if there is none.
func thresholdReports(receive func(context.Context, Threshold)) func(context.Context, thresholds.Reached[Limit]) {
	if receive == nil {
		return nil
	}
	return func(ctx context.Context, r thresholds.Reached[Limit]) {
		receive(ctx, Threshold{
			Rule: r.Rule, Key: r.Subject, Limit: r.Limit, Fraction: r.Fraction, Used: permitsOf(r.Used),
			ResetAfter: micros(r.ResetAfter), Time: time.UnixMicro(r.At),
		})
	}
}
