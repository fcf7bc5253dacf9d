package core

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// decide finds the rule that would refuse the call. In the first Guard that refuses it, this is the
// rule that the answer of the Guard would name.
func (x *explanation) decide() {
	first := -1
	for i, e := range x.rules {
		if e.refusal() > 0 && (first < 0 || e.precedes(x.rules[first])) {
			first = i
		}
	}
	if first >= 0 {
		x.refusedBy(first)
		return
	}
	x.Reason = Allowed
	var by *explained // the rule that gives the Reason
	for _, e := range x.rules {
		switch {
		case !e.Applies || e.Elsewhere:
		case e.Reason == "" && (e.failed != nil || len(e.Errors) > 0):
			x.Reason, x.Rule = "", ""
			return
		case e.Reason == SoftExceeded && (x.Reason != SoftExceeded || e.guard == by.guard && engine.BindsMore(&e.bound, &by.bound, true, true)),
			e.Reason == StoreFailOpen && x.Reason == Allowed:
			x.Reason, x.Rule, by = e.Reason, e.Name, e
		}
	}
}

// precedes reports whether a call passes the Guard of the rule before that of an earlier rule.
// Checks follow the Guards, because they run in handlers. A Guard that was called for more routes is
// probably outside of one that was called for fewer.
func (e *explained) precedes(earlier *explained) bool {
	if e.InHandler != earlier.InHandler {
		return !e.InHandler
	}
	return e.breadth > earlier.breadth
}

// refusedBy marks the rule that refuses the call. It belongs to the same Guard as the rule at
// first.
func (x *explanation) refusedBy(first int) {
	guard := make([]*explained, 0, len(x.rules))
	for _, e := range x.rules {
		if e.guard == x.rules[first].guard {
			guard = append(guard, e)
		}
	}
	e := strongest(guard)
	if e.Reason == IdentifyFailed {
		if shared := sharedRefusal(guard); shared != nil {
			e = shared
		}
	}
	e.Refuses = true
	x.Reason, x.Rule, x.RetryAfter = e.Reason, e.Name, e.RetryAfter
}

// strongest returns the rule of a Guard whose refusal precedes those of others.
func strongest(guard []*explained) (most *explained) {
	most = guard[0]
	for _, e := range guard[1:] {
		weight := e.refusal() - most.refusal()
		if weight > 0 || weight == 0 && e.overLimit() && engine.BindsMore(&e.bound, &most.bound, true, true) {
			most = e
		}
	}
	return most
}

// sharedRefusal returns the rule that refuses a call whose caller or subject could not be determined,
// because its limit does not depend on who calls. It returns nil if there is none, or if such a rule
// is among those that could not count the call.
func sharedRefusal(guard []*explained) *explained {
	shared := slices.DeleteFunc(guard, func(e *explained) bool { return e.refusal() == 0 || e.perUser() })
	if len(shared) == 0 {
		return nil
	}
	if e := strongest(shared); e.overLimit() {
		return e
	}
	return nil
}

// refusal returns how much the refusal by the rule precedes those of others in its Guard, or 0 if
// it refuses nothing. Callers are identified first, and then the subjects are found. A block precedes
// a cost that never fits. Of two such costs, the one that is known without the store precedes.
func (e *explained) refusal() int {
	if !e.Applies || e.Elsewhere {
		return 0
	}
	switch {
	case e.Reason == IdentifyFailed && e.userUnknown:
		return 8
	case e.Reason == IdentifyFailed:
		return 7
	case e.Reason == Blocked:
		return 6
	case e.Reason == CostTooHigh && !e.rule.Overrides:
		return 5
	case e.Reason == CostTooHigh:
		return 4
	case e.overLimit():
		return 3
	case e.Reason == NotLoggedIn:
		return 2
	case e.Reason == StoreFailClosed:
		return 1
	default:
		return 0
	}
}

// perUser reports whether the rule counts by user.
func (e *explained) perUser() bool { return e.rule.NeedLogin || e.named.readsUser.Load() }

// overLimit reports whether a limit, a ban or a block refuses the call.
func (e *explained) overLimit() bool {
	return e.Reason == LimitExceeded || e.Reason == Banned || e.Reason == Blocked
}
