package core

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
	"github.com/accesslimit/accesslimit/core/internal/rulenames"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/weaklist"
)

// registry knows the rules of a limiter, and holds what they share.
type registry struct {
	names    *rulenames.Table[Limit]
	routes   route.Claims[*boundRule]
	attached weaklist.List[attachment]
	sets     ruleorigin.Sets
	limits   limitCache
	handles  cowmap.Map[handleKey, madeHandle]
	tallies  *tally.Table
	log      *operatorlog.Log

	options *Options
	marks   *marks.Set
	// writeChange writes into the audit that the rules of a set have changed. If earlier is not nil,
	// it first waits until it is closed. It closes written when the change is written.
	writeChange func(ctx context.Context, before, now string, earlier <-chan struct{}, written chan<- struct{})
}

// attach claims the names of a guard's rules and adds it to the list, or returns why a name is taken.
func (g *registry) attach(a *attachment) error {
	here := codeplace.Once()
	if conflict := g.names.Claim(nil, claimsOf(a.rules), func(string) string { return here() }); conflict != nil {
		return nameError(conflict, here())
	}
	g.marks.Start()
	for _, rule := range a.rules {
		if rule.fixed != nil {
			rule.fixed.tally = g.tallies.OfRule(rule.fixed.name)
		}
		if !rule.inHandler { // in a handler, a subject may keep the counters apart
			g.watchRoutes(rule)
		}
	}
	g.list(a)
	warnOfNobody(g.log, a.rules)
	return nil
}

// list adds a guard to the list of a limiter's guards, including those of checks, with the place where
// it is being made.
func (g *registry) list(a *attachment) {
	var callers [16]uintptr
	a.callers = slices.Clone(callers[:runtime.Callers(3, callers[:])])
	g.attached.Add(a)
}

// handleKey is the name and the first limit of handles.
type handleKey struct {
	name  string
	limit Limit
}

// madeHandle is what reports show of handles: their further limits, and the kind of the first one and
// where it was made.
type madeHandle struct {
	also    []Limit
	kind    *handleKind
	callers []uintptr
}

// noteHandle notes a handle for reports, unless there are too many.
func (g *registry) noteHandle(h *handle) {
	key := handleKey{h.named.name, h.limits[0].limit}
	if _, known := g.handles.Get(key); known || key.limit == Unlimited || len(g.handles.All()) >= tally.MaxHandles {
		return
	}
	made := madeHandle{kind: h.kind}
	for _, further := range h.limits[1:] {
		made.also = append(made.also, further.limit)
	}
	var callers [16]uintptr
	made.callers = slices.Clone(callers[:runtime.Callers(3, callers[:])])
	g.handles.Add(key, made, tally.MaxHandles)
}

// asRules returns the handles as guards of one rule each, by their names. Nothing is attached.
func (g *registry) asRules() (all []*attachment) {
	for key, made := range g.handles.All() {
		of := &attachment{rules: g.bind([]Rule{{Name: key.name, Limit: key.limit, Also: made.also}}, false), callers: made.callers}
		of.rules[0].handle = true
		of.rules[0].fixed.accepts, of.rules[0].fixed.one = made.kind.accepts, made.kind.one
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b *attachment) int {
		return cmp.Or(strings.Compare(a.rules[0].Name, b.rules[0].Name), strings.Compare(a.rules[0].limits[0].String(), b.rules[0].limits[0].String()))
	})
	return all
}

// checkAll returns what is wrong with the rules of a guard by themselves.
func (g *registry) checkAll(rules []Rule, inHandler bool) (wrong []*RuleError) {
	for i := range rules {
		wrong = append(wrong, g.check(&rules[i])...)
		if inHandler {
			wrong = append(wrong, rules[i].checkInHandler()...)
		}
	}
	return wrong
}

// check returns what is wrong with a rule on this limiter.
func (g *registry) check(r *Rule) []*RuleError {
	wrong := r.check()
	for _, m := range rulefield.CheckOptions(r, g.options) {
		wrong = append(wrong, r.wrong(m.Field, m.Code, m.Value, m.Why))
	}
	return wrong
}

// checkSet returns copies of the rules by name, or all that is wrong with them by themselves.
func (g *registry) checkSet(rules []Rule) (byName map[string]Rule, wrong []*RuleError) {
	byName = make(map[string]Rule, len(rules))
	for _, r := range rules {
		wrong = append(wrong, g.check(&r)...)
		switch _, taken := byName[r.Name]; {
		case r.Name == "":
			wrong = append(wrong, r.wrong("Name", "no_name", "", "must be set: a set knows its rules by their names"))
		case taken:
			wrong = append(wrong, r.wrong("Name", "name_taken", r.Name, "is that of another rule of the set"))
		}
		r = r.clone()
		byName[r.Name] = r
	}
	return byName, wrong
}

// watchRoutes logs a warning when another unnamed rule counts a route of the same name in the same
// counter.
func (g *registry) watchRoutes(rule *boundRule) {
	if rule.Key != nil { // the subjects of key functions cannot be compared
		return
	}
	rule.onRoute = func(p *namedRule) {
		if p.name != route.None && !g.routes.Take(route.Claim{KeyTail: p.limits[0].counted.KeyTail, ByUser: rule.NeedLogin}, rule) {
			g.log.RouteCountedTwice(p.name)
		}
	}
}

// claimsOf returns what must stand for the same limits everywhere: the names of rules, or the counters
// of rules that are named after their patterns.
func claimsOf(rules []*boundRule) (claims []rulenames.Claim[Limit]) {
	for _, rule := range rules {
		if rule.fixed != nil {
			claims = append(claims, rule.claim())
		}
	}
	return claims
}

// claim returns what the rule's name stands for. A name that is made of patterns may stand for several
// spans. A rule in DryRun has counters of its own, and does not claim its Name.
func (b *boundRule) claim() rulenames.Claim[Limit] {
	c := rulenames.Claim[Limit]{
		Name: b.Name, Rule: b.fixed.name, Soft: b.Mode == Soft, Outgoing: b.outgoing,
		Leases: b.Lease > 0, Settles: b.terms != nil,
	}
	if b.Name == "" || b.Mode == DryRun {
		c.Name = b.fixed.limits[0].counted.KeyTail
	}
	for _, limit := range b.limits {
		c.Limits = append(c.Limits, limit.normal())
	}
	return c
}

// nameError returns a conflict as an error. here is where the rule is being attached, or "" if the
// reader of the error knows that.
func nameError(c *rulenames.Conflict[Limit], here string) *RuleError {
	return &RuleError{Rule: c.Own.Rule, Field: "Name", Code: "name_conflict", Value: c.Own.Rule, Why: c.Why(here)}
}

// attachment is what a limiter knows of a Guard: its rules, and what was noted of its calls.
type attachment struct {
	rules []*boundRule // nil if they are those of a RuleSet
	// following holds the present rules of a RuleSet; it is nil if rules is set.
	following atomic.Pointer[followedRules]

	// forwardAuth is set if a proxy asks about calls before it forwards them.
	forwardAuth atomic.Bool

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

// settles reports whether calls by a rule of this name are settled. A nil attachment has no rules.
func (a *attachment) settles(name string) bool {
	return a != nil && slices.ContainsFunc(a.bound(), func(b *boundRule) bool { return b.terms != nil && b.displayName() == name })
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
