package core

import (
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// attachment is what a limiter knows of a Guard: its rules, and what was noted of its calls.
type attachment struct {
	rules []*boundRule // nil if they are those of a RuleSet
	// following holds the present rules of a RuleSet; it is nil if rules is set.
	following atomic.Pointer[followedRules]

	// The fields below are for Explain and Inspect.
	calls   route.Notes
	callers []uintptr // of the function that made the guard
}

// followedRules are the rules of a guard that follows a [RuleSet], in one version of the set. All
// of them are bound anew for each version, even those that stay the same: a call reads one pointer
// (no difference in BenchmarkCheck), and no part of an old version can be mixed in. Each
// rule learns again which limits LimitFor returns and whether its functions read the user.
type followedRules struct {
	rules []*boundRule
	*setVersion
}

// setVersion is a version of a [RuleSet]. It does not change.
type setVersion struct {
	name  string
	place func(rule string) string // where each rule stands, or nil
	key   func(rule string) string // the key of each as it is written there, or nil
}

// bound returns the rules that decide a call which begins now.
func (a *attachment) bound() []*boundRule {
	if a.rules != nil {
		return a.rules
	}
	return a.following.Load().rules
}

// inForce returns the rules that decide the next call, their version, and a function that returns
// where a rule is written or was attached.
func (a *attachment) inForce() (rules []*boundRule, version string, place func(rule string) string) {
	attachedAt := ""
	place = func(string) string {
		if attachedAt == "" {
			attachedAt = codeplace.OfCallers(a.callers)
		}
		return attachedAt
	}
	followed := a.following.Load()
	if followed == nil {
		return a.rules, "", place
	}
	if followed.place != nil {
		place = followed.place
	}
	return followed.rules, followed.name, place
}

// writtenKey returns the key of a rule of the guard as it is written in a file, or "".
func (a *attachment) writtenKey(rule string) string {
	if followed := a.following.Load(); followed != nil && followed.key != nil {
		return followed.key(rule)
	}
	return ""
}
