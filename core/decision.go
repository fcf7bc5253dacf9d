package core

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/refund"
)

// Decision is the answer to one call. A refusal is a Decision, not an error.
//
// In the Decision of a direct call, Rule and Key are the strings that the caller passed. If a
// framework lent them for one request, copy them before keeping the Decision or refunding it later.
// OnDecision receives copies.
type Decision struct {
	// Allowed reports whether the call may go on.
	Allowed bool
	// Reason is why the call is allowed or refused.
	Reason Reason
	// Rule is the name of the rule or the handle. It is a good metric label if the number of routes
	// is bounded.
	Rule string
	// Key is the subject as counted: user:alice, ip:203.0.113.7. Do not use it as a metric label,
	// because callers choose it.
	Key string
	// Limit is the limit that decided, or Unlimited if none counts the call.
	Limit Limit
	// Remaining is the number of permits left after this call's charge. For Unlimited it is
	// math.MaxInt.
	Remaining int
	// ResetAfter is the time until the counter equals a fresh one, if nobody charges it. It is an
	// upper bound if this call's charge was given back, because another Redis server refused it.
	ResetAfter time.Duration
	// RetryAfter is the time after which the same call passes, if nobody else charges the counter.
	// It is 0 if the call is allowed, and if waiting cannot help.
	//
	// It is exact, except that it is up to Window/32 too long for SlidingWindow, and an upper bound
	// for Concurrency and with Rule.Lease. It counts from the arrival of Redis's reply, so it is
	// too long by the time that the reply took. FromDenyCache, too, it counts from that arrival.
	RetryAfter time.Duration
	// Wait is the time until the turn of a reservation ([Pacer.Reserve]), and otherwise 0. But
	// OnDecision receives the time that Acquire and TryAcquire are going to wait.
	Wait time.Duration
	// Source is what answered the call.
	Source Source
	// All has one Decision for each limit, the binding one first, if there are several; otherwise
	// it is nil. If limits are counted on several Redis servers and one refuses as it did just
	// before, the others are not asked and not included.
	All []Decision

	receipt refund.Receipt // what was charged
}

// Reason says why a call was allowed or refused. Its text is stable, for logs and metrics.
type Reason string

// The reasons. A call is allowed by Allowed, DryRunExceeded, SoftExceeded and StoreFailOpen only.
const (
	// Allowed means that all limits had permits left.
	Allowed Reason = "allowed"
	// LimitExceeded means that no permits are left.
	LimitExceeded Reason = "limit_exceeded"
	// Banned means that the subject is banned from the rule.
	Banned Reason = "banned"
	// Blocked means that an operator blocked the subject from the rule. See package operate.
	Blocked Reason = "blocked"
	// DryRunExceeded means that a rule in DryRun would have refused the call.
	DryRunExceeded Reason = "dry_run_exceeded"
	// SoftExceeded means that the call does not fit into a limit of a rule in Soft. It goes on, and
	// that rule did not charge it.
	SoftExceeded Reason = "soft_exceeded"
	// NotLoggedIn means that NeedLogin is set, and the caller is not logged in.
	NotLoggedIn Reason = "not_logged_in"
	// IdentifyFailed means that Identify or a key function returned an error.
	IdentifyFailed Reason = "identify_failed"
	// StoreFailOpen means that the store did not answer, and the call is allowed uncounted.
	StoreFailOpen Reason = "store_fail_open"
	// StoreFailClosed means that the store did not answer, and the call is refused.
	StoreFailClosed Reason = "store_fail_closed"
	// ContextEnded means that the caller's own context has ended.
	ContextEnded Reason = "context_ended"
	// CostTooHigh means that the cost is more than the limit can ever allow.
	CostTooHigh Reason = "cost_too_high"
)

// Source names what answered a call.
type Source string

// The sources.
const (
	// FromRedis means the counters in Redis.
	FromRedis Source = "redis"
	// FromMemory means the counters in this process, without Redis.
	FromMemory Source = "memory"
	// FromDenyCache means a refusal by Redis that still holds. A process remembers it for at most a
	// second, for the same limits and cost. If another process changes the counter meanwhile
	// (Reset, Refund), that is seen after this second.
	FromDenyCache Source = "deny_cache"
	// FromLease means a permit that came from Redis together with others. See Rule.Lease.
	FromLease Source = "lease"
	// FromLocal means this process's own count, because Redis did not answer and the policy is
	// CountLocally.
	FromLocal Source = "local"
	// FromMarks means a ban or a block. Each process knows those of all subjects, so no counter was asked.
	FromMarks Source = "marks"
	// FromNobody means that no counter was asked, or that Redis did not answer.
	FromNobody Source = "none"
)

// sourceOf returns the source of a verdict from an origin. counts is where the limiter keeps its
// counters.
func sourceOf(from algorithm.Origin, counts Source) Source {
	switch from {
	case algorithm.FromRefusal:
		return FromDenyCache
	case algorithm.FromLease:
		return FromLease
	case algorithm.FromLocal:
		return FromLocal
	case algorithm.FromMark:
		return FromMarks
	case algorithm.FromNobody:
		return FromNobody
	default:
		return counts
	}
}

// fill writes a store's answer into d, the zero Decision. A Decision is large, so none is built
// elsewhere and copied.
func (d *Decision) fill(name string, limit *Limit, v *algorithm.Verdict, source Source) {
	d.Allowed, d.Reason = v.RetryAfter == 0, Allowed
	if !d.Allowed {
		d.Reason = LimitExceeded
	}
	d.Limit = *limit // by itself: assigned together with others it is copied twice
	d.Rule, d.Source, d.Remaining = name, source, permitsOf(v.Remaining)
	d.ResetAfter, d.RetryAfter, d.Wait = micros(v.ResetAfter), micros(v.RetryAfter), micros(v.Wait)
	if v.RetryAfter == algorithm.Forever {
		d.RetryAfter = 0
	}
}

// fillUnlimited fills the zero Decision d for a call that no limit counts.
func (d *Decision) fillUnlimited(name, key string) {
	d.Allowed, d.Reason, d.Rule, d.Key, d.Limit = true, Allowed, name, key, Unlimited
	d.Remaining, d.Source = math.MaxInt, FromNobody
}

// permitsOf returns a number of permits, or the largest int if that is smaller. An int may have 32
// bits, and processes of 64 bits store larger numbers.
func permitsOf(n int64) int { return int(min(n, math.MaxInt)) }

// clone returns the decision of a direct call with its own copies of the name and the subject,
// which a framework may have lent to the caller for one call.
func (d Decision) clone() Decision {
	d.Rule, d.Key = strings.Clone(d.Rule), strings.Clone(d.Key)
	return d
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// overLimit reports whether the caller was refused by a limit, a ban or a block, which tell how long
// to wait.
func (d *Decision) overLimit() bool {
	return d.Reason == LimitExceeded || d.Reason == Banned || d.Reason == Blocked
}

// exposed is a context that carries the decision and the user to the handler.
type exposed struct {
	context.Context
	decision Decision
	user     string
}

type (
	decisionKey struct{}
	userKey     struct{}
	exposedKey  struct{}
)

// Value implements context.Context.
func (e *exposed) Value(key any) any {
	switch key {
	case decisionKey{}:
		return e.decision
	case exposedKey{}:
		return e
	case userKey{}:
		if e.user != "" {
			return e.user
		}
	}
	return e.Context.Value(key)
}

// inside returns the decision that handlers find if a middleware inside another one lets the call
// pass. If the outer one found a soft limit exceeded, that stays the decision, because handlers look
// for it.
func (d Decision) inside(ctx context.Context) Decision {
	outer, _ := ctx.Value(exposedKey{}).(*exposed)
	if outer == nil || outer.decision.Reason != SoftExceeded || d.Reason == SoftExceeded {
		return d
	}
	both := outer.decision
	both.All = slices.Concat(both.each(), d.each())
	return both
}

// each returns the decisions of all limits.
func (d Decision) each() []Decision {
	if d.All != nil {
		return d.All
	}
	return []Decision{d}
}

// DecisionFrom returns the decision of the innermost middleware on this call, if Options.Expose is
// set. A decision of any middleware with the Reason [SoftExceeded] goes before it, even without
// Expose. If that middleware is outside of the innermost one, All has the limits of both. The
// context is the request's own: r.Context(), c.Request.Context(), c.Request().Context(),
// c.UserContext(), or gRPC's ctx.
func DecisionFrom(ctx context.Context) (Decision, bool) {
	d, ok := ctx.Value(decisionKey{}).(Decision)
	return d, ok
}

// UserFrom returns the user that Options.Identify found for this call, if Options.Expose is set and
// a rule asked for the user.
func UserFrom(ctx context.Context) (string, bool) {
	user, ok := ctx.Value(userKey{}).(string)
	return user, ok
}
