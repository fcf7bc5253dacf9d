package core

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// maxAttached bounds the list of guards, because handlers may make one in each call.
const maxAttached = 4_000

// attachment is what a limiter knows of a Guard: its rules, and what was noted of its calls.
type attachment struct {
	rules []*boundRule // nil if they are those of a RuleSet
	// following holds the present rules of a RuleSet; it is nil if rules is set.
	following atomic.Pointer[followedRules]

	// The fields below are for Explain and Inspect.
	calls   route.Notes
	callers []uintptr // of the function that made the guard
}

// followedRules are the rules of a guard that follows a [RuleSet], in one version of the set.
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

// attachedGuards lists the guards of a limiter, including those of checks, in the order in which
// they were made. Explain and Inspect read it. The pointers are weak, so the list does not keep a
// guard that the service has dropped.
type attachedGuards struct {
	mu       sync.Mutex
	guards   []weak.Pointer[attachment]
	sweepAt  int // the length of the list at which dropped guards are removed next
	rejected int // how many guards found no room since the list was swept

	unlisted atomic.Int64 // the guards in use that found no room
}

func (a *attachedGuards) add(g *attachment) {
	var callers [16]uintptr
	g.callers = slices.Clone(callers[:runtime.Callers(3, callers[:])])
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.guards) >= a.sweepAt || a.rejected >= maxAttached/4 {
		a.sweep()
	}
	if len(a.guards) < maxAttached {
		a.guards = append(a.guards, weak.Make(g))
		return
	}
	a.rejected++
	a.unlisted.Add(1)
	runtime.AddCleanup(g, func(unlisted *atomic.Int64) { unlisted.Add(-1) }, &a.unlisted)
}

// sweep removes dropped guards from the list. The next sweep is due when the list has doubled, or
// when it is full and many guards found no room in it. So sweeping costs little for each guard.
func (a *attachedGuards) sweep() {
	a.guards = slices.DeleteFunc(a.guards, func(g weak.Pointer[attachment]) bool { return g.Value() == nil })
	a.rejected, a.sweepAt = 0, min(max(64, 2*len(a.guards)), max(maxAttached, len(a.guards)+1))
}

// all returns the listed guards that are still in use, and the number of guards in use that are not
// listed.
func (a *attachedGuards) all() (guards []*attachment, unlisted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, pointer := range a.guards {
		if g := pointer.Value(); g != nil {
			guards = append(guards, g)
		}
	}
	return guards, int(a.unlisted.Load())
}
