package core

import (
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Decision is the answer to one call. Being refused is a value, not an error.
//
// Rule and Key of a direct call's Decision are the strings that the caller passed. If a framework
// lent them for one request, copy them before keeping the Decision or refunding it later.
// OnDecision receives copies.
type Decision struct {
	// Allowed says whether the call may go on.
	Allowed bool
	// Reason is why.
	Reason Reason
	// Rule is the name of the rule, or of a direct call; a good metric label where routes are bounded.
	Rule string
	// Key is the subject as counted: user:alice, ip:203.0.113.7. Never a metric label: callers choose it.
	Key string
	// Limit is what was asked.
	Limit Limit
	// Remaining is how many permits are left, after this call's charge; math.MaxInt of Unlimited.
	Remaining int
	// ResetAfter is how long until the counter equals a fresh one, if nobody charges it.
	ResetAfter time.Duration
	// RetryAfter is how long to wait before the same call passes, if nobody else charges: exactly
	// that, but at most Window/32 too long for SlidingWindow, and an upper bound for Concurrency
	// and with Rule.Lease. It counts from when the reply of Redis came, also FromDenyCache, so it
	// is too long by the time that the reply took. It is 0 when allowed, and when waiting cannot
	// help.
	RetryAfter time.Duration
	// Wait is how long to wait for the turn of a reservation ([Pacer.Reserve]); otherwise 0, except that
	// OnDecision receives how long Acquire and TryAcquire are going to wait.
	Wait time.Duration
	// Source is who answered.
	Source Source
	// All has one Decision for each limit that was asked, the binding one first, when there was
	// more than one; otherwise nil. When limits are counted on several Redis servers and one
	// refuses as it did just before, the others are not asked.
	All []Decision

	receipt receipt // what was charged
}

// Reason is why a call was allowed or refused. Its text is stable, for logs and metrics.
type Reason string

// The reasons.
const (
	Allowed         Reason = "allowed"
	LimitExceeded   Reason = "limit_exceeded"    // refused: nothing is left
	Banned          Reason = "banned"            // refused: the subject is banned from the rule
	DryRunExceeded  Reason = "dry_run_exceeded"  // allowed, by a rule in DryRun that would have refused
	NotLoggedIn     Reason = "not_logged_in"     // refused: NeedLogin, and the caller is nobody
	IdentifyFailed  Reason = "identify_failed"   // refused: who calls, or whom to count, could not be found out
	StoreFailOpen   Reason = "store_fail_open"   // allowed uncounted: the store did not answer
	StoreFailClosed Reason = "store_fail_closed" // refused: the store did not answer
	ContextEnded    Reason = "context_ended"     // refused: the caller's own context has ended
	CostTooHigh     Reason = "cost_too_high"     // refused: the cost is more than the limit can ever allow
)

// Source is who answered a call.
type Source string

// The sources.
const (
	FromRedis  Source = "redis"
	FromMemory Source = "memory"
	// FromDenyCache is a refusal of Redis's that still holds, and was remembered here. It is remembered for at most a second,
	// for the same limit and cost: what another process does to the counter meanwhile (Reset, Refund, Unban) is seen after that.
	FromDenyCache Source = "deny_cache"
	// FromLease is a permit that came from Redis together with others: see Rule.Lease.
	FromLease Source = "lease"
	// FromLocal is this process's own count, because Redis did not answer and the policy is CountLocally.
	FromLocal  Source = "local"
	FromNobody Source = "none" // no counter was asked, or the store did not answer
)

// sourceOf is who gave a verdict, of a limiter that counts there.
func sourceOf(v *algorithm.Verdict, counts Source) Source {
	switch v.From {
	case algorithm.FromRefusal:
		return FromDenyCache
	case algorithm.FromLease:
		return FromLease
	case algorithm.FromLocal:
		return FromLocal
	case algorithm.FromNobody:
		return FromNobody
	default:
		return counts
	}
}

// fill puts an engine's answer into words, in the zero Decision. A Decision is large, so none is made to be copied.
func (d *Decision) fill(name string, limit *Limit, v *algorithm.Verdict, source Source) {
	d.Allowed, d.Reason = v.RetryAfter == 0, Allowed
	if !d.Allowed {
		d.Reason = LimitExceeded
	}
	d.Limit = *limit // by itself: assigned together with others it is copied twice
	d.Rule, d.Source, d.Remaining = name, source, int(v.Remaining)
	d.ResetAfter, d.RetryAfter, d.Wait = micros(v.ResetAfter), micros(v.RetryAfter), micros(v.Wait)
}

// clone returns the decision of a direct call with its own copies of the name and the subject,
// which a framework may have lent to the caller for one call.
func (d Decision) clone() Decision {
	d.Rule, d.Key = strings.Clone(d.Rule), strings.Clone(d.Key)
	return d
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// overLimit says whether the caller was refused for having called too often.
func (d *Decision) overLimit() bool { return d.Reason == LimitExceeded || d.Reason == Banned }
