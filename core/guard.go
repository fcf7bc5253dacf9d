package core

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Guard is a set of rules that are decided together. A middleware calls [Guard.Check] for every
// call. Make one with [Limiter.Guard] when the service starts, or with [RuleSet.Guard], for rules
// that are replaced while it runs. It is safe for concurrent use.
type Guard struct {
	limiter *Limiter
	rules   []*boundRule // nil if the guard follows a RuleSet
	// following holds the present rules of a guard that follows a RuleSet.
	following atomic.Pointer[[]*boundRule]

	// The fields below are for Explain and Inspect.
	calls   atomic.Pointer[guardCalls] // nil before the first call
	noting  atomic.Int32               // how many of the first calls were noted
	set     *RuleSet                   // that the guard follows, or nil
	callers []uintptr                  // of the function that made the guard
}

// Guard returns a Guard of these rules. They are decided together, all charged or none. The error
// is a *[RuleError]. A name stands for one limit on a Limiter: if another Guard or Check has a rule
// of the same name with another limit, that is an error too.
func (l *Limiter) Guard(rules ...Rule) (*Guard, error) {
	return l.guard(rules, false)
}

func (l *Limiter) guard(rules []Rule, inHandler bool) (*Guard, error) {
	switch {
	case !l.made():
		return nil, errNoLimiter
	case len(rules) == 0:
		return nil, &RuleError{Field: "rules", Value: rules, Why: "must be at least one"}
	}
	g := &Guard{limiter: l}
	sameName := make(map[string]int)
	for _, r := range rules {
		if wrong := l.checkRule(&r); wrong != nil {
			return nil, wrong
		}
		g.rules = append(g.rules, l.bind(r, sameName))
	}
	here := codeplace.Once()
	if wrong := l.names.claim(nil, g.rules, func(string) string { return here() }); wrong != nil {
		return nil, wrong.error(here())
	}
	l.watchBans(g.rules)
	for _, rule := range g.rules {
		if rule.fixed != nil {
			rule.fixed.tally = l.tallies.OfRule(rule.fixed.name)
		}
		// In a handler, a subject may keep the counters apart.
		if rule.inHandler = inHandler; !inHandler {
			l.watchRoutes(rule)
		}
	}
	l.attached.add(g)
	warnOfNobody(l.operatorLog, g.rules)
	return g, nil
}

// MustGuard is like Guard but panics if a rule is wrong.
func (l *Limiter) MustGuard(rules ...Rule) *Guard { return orPanic(l.Guard(rules...)) }

// Check decides whether a call may go on. It sets the headers that tell the caller the limits, and
// returns an Answer for the adapter to carry out. The handler must run inside [Answer.Run], unless
// the answer is [Answer.Final]. Check returns by Options.Timeout, whatever Redis does, and never
// panics by itself. If a function of the service panics in it, the call ends as if its handler had
// panicked: its slots are free, and Count receives 500 or 13.
func (g *Guard) Check(v View) Answer { return g.check(v, "") }

// Answer is the result of a check, which an adapter carries out. The headers that tell the caller
// the limits are already set.
type Answer struct {
	// Refusal is sent in place of the handler's reply. If it is nil, the call goes on.
	Refusal *Refusal
	// Context, if not nil, replaces the call's own context for the handler. See Options.Expose.
	Context context.Context

	completion *completion // what Run does after the handler
}

// Final reports whether the limiter has nothing to do after the handler, as for most calls that go
// on. Then an adapter may call the handler itself, instead of through Run and Watch.
func (a Answer) Final() bool { return a.completion == nil }

// Run runs the handler of a call that goes on. Afterwards, even if the handler panics, it gives
// back what rules with Count or Concurrency require. handle returns the outcome: the HTTP status,
// or 0 if the handler returned without choosing one; for gRPC, the code. An adapter calls Run for
// every call that is not refused, unless the answer is [Answer.Final].
func (a Answer) Run(handle func() (status int)) {
	if a.completion == nil {
		handle()
		return
	}
	if a.completion.done.Swap(true) { // an adapter's mistake, which must not give back twice
		handle()
		return
	}
	a.completion.run(handle)
}

// Rules returns copies of the guard's rules.
func (g *Guard) Rules() []Rule {
	if !g.made() {
		panic(errZeroGuard)
	}
	bound := g.bound()
	rules := make([]Rule, len(bound))
	for i, rule := range bound {
		rules[i] = rule.Rule.clone()
	}
	return rules
}

// Reset forgets what a subject used of all limits of the guard's rules, including those of Also and
// Plans, as if it had never called. It reports whether there was anything to forget. For a rule
// without a Name it resets the routes that this process has been called for. It neither ends a ban
// (see [Limiter.Unban]) nor resets limits from LimitFor. Errors are those of [Counter.Reset].
func (g *Guard) Reset(ctx context.Context, subject string) (changed bool, err error) {
	if !g.made() {
		return false, errZeroGuard
	}
	rules := g.bound()
	name := rules[0].displayName()
	if err := checkSubject(name, subject); err != nil {
		return false, err
	}
	var forget forgotten
	for _, rule := range rules {
		for _, named := range rule.namedRules() {
			forget.add(g.limiter, rule, named, subject)
		}
	}
	return forget.reset(ctx, g.limiter, name, subject)
}

// forgotten are the keys of counters, and of reports of their thresholds, that a reset forgets.
type forgotten struct{ counters, notices [][]byte }

// add adds those of a rule under one of its names.
func (f *forgotten) add(l *Limiter, rule *boundRule, named *namedRule, subject string) {
	for _, limit := range named.countedLimits() {
		f.counters = append(f.counters, rediskey.Append(nil, l.keyHead, subject, limit.keyTail))
	}
	f.notices = rule.appendNotices(f.notices, named, l.keyHead, subject)
}

func (f *forgotten) reset(ctx context.Context, l *Limiter, name, subject string) (changed bool, err error) {
	if len(f.notices) > 0 {
		defer l.thresholds.Forget(f.notices...)
	}
	keys := append(f.counters, f.notices...)
	slices.SortFunc(keys, bytes.Compare) // rules that many routes share have the same keys
	return l.reset(ctx, audit.Reset, name, subject, slices.CompactFunc(keys, bytes.Equal)...)
}

// bound returns the rules that decide a call which begins now.
func (g *Guard) bound() []*boundRule {
	if g.rules != nil {
		return g.rules
	}
	return *g.following.Load()
}

// made reports whether a Limiter made the guard.
func (g *Guard) made() bool { return g != nil && g.limiter != nil }

func (g *Guard) check(v View, subject string) Answer {
	if !g.made() {
		panic(errZeroGuard)
	}
	c := g.limiter.open(v)
	defer g.limiter.close(c)
	if c.inspects || g.noting.Load() < noteFirst {
		g.note(c, subject)
	}
	answer := c.decide(g.bound(), subject)
	c.decided = true
	return answer
}
