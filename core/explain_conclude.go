package core

import (
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// conclude fills in what follows from the store's answers, and for a call which rule would refuse.
func (x *explanation) conclude() {
	for _, e := range x.rules {
		if e.asked {
			x.concludeRule(e)
		}
	}
	if x.Subject == "" {
		x.decide()
	}
	x.Rules = make([]ExplainedRule, len(x.rules))
	for i, e := range x.rules {
		x.Rules[i] = e.ExplainedRule
	}
}

// findTime takes the time from an answer, and reports whether there is one.
func (x *explanation) findTime() (found bool) {
	for _, e := range x.rules {
		for _, q := range append(e.questions(), e.banned) {
			if v := q.answer(); v != nil {
				x.Time, found = time.UnixMicro(v.At).UTC(), true
			}
		}
	}
	return found
}

// concludeRule fills in what follows for a rule by itself.
func (x *explanation) concludeRule(e *explained) {
	for i := range e.limits {
		e.Limits = append(e.Limits, e.explainLimit(&e.limits[i]))
	}
	e.Cost, e.Override = permitsOf(e.cost), e.stored
	x.describeBan(e)
	e.Reason, e.bound = e.reason(), e.binding(x.Time)
	if wait := e.bound.RetryAfter; wait != algorithm.Forever && (e.isBlocked() || !e.tooCostly()) {
		e.RetryAfter = micros(wait)
	}
}

// explainLimit returns a limit with the store's answer.
func (e *explained) explainLimit(a *askedLimit) ExplainedLimit {
	out := ExplainedLimit{Source: a.source}
	if a.ruleLimit == nil {
		out.Limit = Unlimited
		return out
	}
	out.Limit = a.limit
	if v := a.answer(); v != nil {
		out.Known, out.Remaining, out.ResetAfter = true, permitsOf(v.Remaining), micros(v.ResetAfter)
		out.Used = max(0, a.limit.atOnce()-out.Remaining)
		if !e.exceeds(a) { // otherwise no wait helps
			out.RetryAfter = micros(v.RetryAfter)
		}
	}
	return out
}

// describeBan fills in what is known of the subject's ban.
func (x *explanation) describeBan(e *explained) {
	v := e.banned.answer()
	if v == nil {
		return
	}
	ban, _ := algorithm.ReadBan(e.ban, v.At) // there may be none, and a foreign value is no answer
	if memory := x.front.Memory; memory != nil {
		ban, _ = memory.BanOf(e.banned.counter.Key)
	}
	e.Bans, e.Strikes = int(ban.Bans), int(ban.Strikes(e.rule.ban, v.At))
	if e.banWait = v.RetryAfter; e.banWait > 0 {
		e.BannedUntil = time.UnixMicro(v.At + v.RetryAfter).UTC()
	} else if refused, _ := e.exceeded(); refused {
		e.banWait = ban.Begins(e.rule.ban, v.At)
	}
}

// reason returns the reason that a call would get by this rule alone, or "" if it is not known.
func (e *explained) reason() Reason {
	certain, possible := e.exceeded()
	switch {
	case e.isBlocked():
		return e.wouldBe(Blocked)
	case e.tooCostly():
		return e.wouldBe(CostTooHigh)
	case e.banWait > 0 && !e.outlastsBan():
		return e.wouldBe(Banned)
	case certain:
		return e.wouldBe(LimitExceeded)
	case e.failed != nil:
		return e.withoutStore()
	case possible:
		return ""
	default:
		return Allowed
	}
}

func (e *explained) isBlocked() bool {
	return e.stored != nil && e.stored.Blocked && e.stored.Ignored == ""
}

// exceeded reports whether the limits refuse the call. An Inspect does not know the plan: then it
// is certain only if every limit that may be in force refuses.
func (e *explained) exceeded() (certain, possible bool) {
	certain = len(e.limits) > 0
	for i := range e.limits {
		a := &e.limits[i]
		v := a.answer()
		switch refused := v != nil && v.RetryAfter > 0; {
		case refused && !a.own:
			return true, true
		case a.own:
			certain, possible = certain && refused, possible || refused || a.isUnknown()
		}
	}
	return certain, possible
}

// outlastsBan reports whether a further limit refuses the call for longer than the ban, which the
// rule's own limit reports.
func (e *explained) outlastsBan() bool {
	longest := e.banWait
	if own := e.limits[0].answer(); own != nil {
		longest = max(longest, own.RetryAfter)
	}
	return slices.ContainsFunc(e.limits, func(a askedLimit) bool {
		v := a.answer()
		return v != nil && !a.own && v.RetryAfter > longest
	})
}

// isUnknown reports whether LimitFor computes the limit for each call.
func (a *askedLimit) isUnknown() bool { return a.ruleLimit != nil && a.counted.Compiled == nil }

// tooCostly reports whether the cost is above a limit in force. A call of a rule with Overrides does
// not know its limits if the store does not answer.
func (e *explained) tooCostly() bool {
	if e.rule.Overrides && e.failed != nil {
		return false
	}
	return slices.ContainsFunc(e.limits, func(a askedLimit) bool { return e.exceeds(&a) })
}

// exceeds reports whether the cost is more than the limit ever lets through.
func (e *explained) exceeds(a *askedLimit) bool {
	return a.ruleLimit != nil && a.counted.Compiled != nil && e.costOf(a) > a.counted.Compiled.Max
}

// withoutStore returns the reason that a call gets if the store does not answer. It does not look
// at counts in this process.
func (e *explained) withoutStore() Reason {
	switch policy := e.rule.OnStoreError; {
	case policy.mode == countLocally:
		return ""
	case policy == FailClosed && !e.DryRun:
		return StoreFailClosed
	default:
		return StoreFailOpen
	}
}

// binding returns, of the verdicts on the rule's limits, the one that binds the call most. The
// first limit reports a ban, as in a call.
func (e *explained) binding(now time.Time) (most algorithm.Verdict) {
	if e.isBlocked() {
		most.RetryAfter = algorithm.Forever
		if until := e.stored.Until; !until.IsZero() {
			most.RetryAfter = until.Sub(now).Microseconds()
		}
		return most
	}
	costly := e.tooCostly()
	if costly && e.rule.Overrides { // a call does not look at these counters
		return algorithm.Verdict{RetryAfter: algorithm.Forever}
	}
	most.RetryAfter = e.banWait
	for i := range e.limits {
		v := e.limits[i].answer()
		if v != nil && costly {
			never := *v
			never.RetryAfter = algorithm.Forever
			v = &never
		}
		switch {
		case v == nil:
		case i == 0 && most.RetryAfter > 0:
			most.RetryAfter, most.ResetAfter = max(most.RetryAfter, v.RetryAfter), v.ResetAfter
		case i == 0 || engine.BindsMore(v, &most, v.RetryAfter > 0, most.RetryAfter > 0):
			most = *v
		}
	}
	return most
}
