package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/route"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// boundRule is a checked rule of a guard, with everything prepared that does not change from call
// to call.
type boundRule struct {
	Rule
	limits  []Limit      // its own, then those of Also
	ban     *marks.Terms // of the bans that it imposes, or nil
	marks   *marks.Set
	price   func(Request) int // its Cost or Estimate
	terms   *BillTerms        // by which its calls are settled, or nil if it has no Estimate
	learns  afterwards
	scope   pathmatch.Scope
	tallies *tally.Table
	suffix  string     // tells rules of one name on one guard apart in headers
	fixed   *namedRule // of a rule whose name does not depend on the call
	routes  route.Table[*namedRule]
	// inHandler is set for the rules of a Check, which does not learn how a call ends.
	inHandler bool
	// outgoing is set for a rule for calls that go out, which decides no call that comes in.
	outgoing bool
	// handle is set for a handle that a report shows as a rule.
	handle bool
	// unrouted is set when the rule was asked for a call whose route was not known yet.
	unrouted atomic.Bool
	// onRoute, if not nil, is called for every route that an unnamed rule meets.
	onRoute func(*namedRule)
}

// afterwards is what a rule has to learn of a call that goes on.
type afterwards uint8

const (
	howItEnds    afterwards = 1 << iota // it has Count, or terms
	whatItCosted                        // it has terms
)

// learnedBy returns what a rule with these terms, or nil, has to learn.
func learnedBy(r *Rule, terms *BillTerms) afterwards {
	switch {
	case terms != nil:
		return howItEnds | whatItCosted
	case r.Count != nil:
		return howItEnds
	default:
		return 0
	}
}

// bind prepares the rules of a guard, which were checked.
func (g *registry) bind(rules []Rule, inHandler bool) (bound []*boundRule) {
	sameName := make(map[string]int)
	for _, r := range rules {
		r = r.clone()
		rule := g.bindAs(r, "")
		name := rule.fixedName()
		sameName[name]++
		switch n := sameName[name]; {
		case n == 2:
			rule = g.bindAs(r, "-"+rule.limits[0].terms().SpanName())
		case n > 2:
			rule = g.bindAs(r, fmt.Sprintf("-%s-%d", rule.limits[0].terms().SpanName(), n))
		}
		rule.inHandler = inHandler
		bound = append(bound, rule)
	}
	return bound
}

// bindAs is bind for a rule whose limits have a suffix in headers.
func (g *registry) bindAs(r Rule, suffix string) *boundRule {
	r.OnStoreError = cmp.Or(r.OnStoreError, FailOpen)
	b := &boundRule{Rule: r, tallies: g.tallies, marks: g.marks, limits: append([]Limit{r.limit()}, r.Also...), price: r.Cost, suffix: suffix}
	if r.Estimate != nil {
		b.price, b.terms = r.Estimate, new(r.Bill.filled())
	}
	if r.Ban != (Ban{}) {
		b.ban = r.Ban.terms(b.limits[0].terms().Span())
	}
	b.learns = learnedBy(&b.Rule, b.terms)
	b.scope = pathmatch.NewScope(r.Methods, r.Paths, r.Except)
	if name := b.fixedName(); name != "" {
		b.fixed = b.newNamed(name)
	}
	return b
}

// displayName returns the rule's name, or "" if that depends on the call.
func (b *boundRule) displayName() string {
	if b.fixed != nil {
		return b.fixed.name
	}
	return ""
}

// fixedName returns the rule's Name, or one made of its methods and patterns; "" if it is named
// after the route of each call.
func (b *boundRule) fixedName() string {
	if b.Name != "" || len(b.Paths) == 0 {
		return b.Name
	}
	methods, paths, except := slices.Sorted(slices.Values(b.Methods)), slices.Sorted(slices.Values(b.Paths)), slices.Sorted(slices.Values(b.Except))
	name := strings.Join(paths, ",")
	if len(methods) > 0 {
		name = strings.Join(methods, ",") + " " + name
	}
	if len(except) > 0 {
		name += " except " + strings.Join(except, ",")
	}
	return name
}

// newNamed returns the rule under a name, without its tally, which only a rule in use needs.
func (b *boundRule) newNamed(name string) *namedRule {
	p := &namedRule{name: name, tried: b.Mode == DryRun, marks: b.marks.Rule(name), ban: b.ban, strikeTail: rediskey.StrikeTail(name, b.Mode == DryRun), accepts: b.accepts}
	for i, limit := range b.limits {
		compiled, _ := limit.compile() // Rule.check has reported the error
		p.limits = append(p.limits, b.newLimit(name, i, b.limits, &compiled))
	}
	b.addPlans(p)
	p.prepareAll = func(all []*preparedLimit) (limits []*ruleLimit) {
		var plain []Limit
		for i, of := range all {
			plain = append(plain, of.limit)
			limits = append(limits, b.newLimit(name, i, plain, &of.compiled))
		}
		return limits
	}
	p.counted = b.counted(p)
	return p
}

// accepts returns why a limit in place of the rule's own does not suit the rule, or "".
func (b *boundRule) accepts(limit *Limit) string {
	switch p := limit.Algorithm.properties(); {
	case b.terms != nil && cannotBeSettled(p):
		return notSettleable
	case b.inHandler && p.Slots:
		return "takes slots, which nothing gives back"
	default:
		return ""
	}
}

// counted returns what the engine knows of the rule under a name.
func (b *boundRule) counted(p *namedRule) engine.Rule {
	r := engine.Rule{Name: p.name, Soft: b.Mode == Soft, Lease: int64(b.Lease), Warn: b.Warn}
	for _, limit := range p.limits {
		r.Limits = append(r.Limits, &limit.counted)
	}
	b.OnStoreError.apply(&r)
	r.Required = r.Required && b.Mode != DryRun // a failure refuses nobody
	return r
}

// addPlans makes the limits of the rule's Plans.
func (b *boundRule) addPlans(p *namedRule) {
	if len(b.Plans) == 0 {
		return
	}
	p.plans = make(map[string]*ruleLimit, len(b.Plans))
	for plan, limit := range b.Plans {
		if limit == Unlimited {
			p.plans[plan] = nil
			continue
		}
		compiled, _ := limit.compile() // Rule.check has reported the error
		p.plans[plan] = b.newLimit(p.name, 0, []Limit{limit}, &compiled)
	}
}

// newLimit prepares the limit at i of some that hold together under a name.
func (b *boundRule) newLimit(name string, i int, limits []Limit, compiled *algorithm.Limit) *ruleLimit {
	limit, title := limits[i], limitheader.Title(name)+b.suffix
	if i > 0 {
		title += "-" + limit.terms().SpanName() + again(limits[1:i], limit)
	}
	policy := limitheader.NewPolicy(title, limit.terms().AtOnce(), limit.terms().FullAgainAfter(), limit.Algorithm.properties().Slots)
	policy.Leased = b.Lease > 0
	return &ruleLimit{
		limit: limit, phrase: limit.terms().Phrase(),
		counted: engine.Limit{Compiled: compiled, Max: int64(limit.Max), KeyTail: rediskey.LimitTail(name, b.Mode == DryRun, compiled)},
		policy:  policy,
	}
}

// again returns what distinguishes limits of the same span: "" for the first, -2 for the next.
func again(before []Limit, limit Limit) string {
	n := 1
	for _, earlier := range before {
		if earlier.terms().SpanName() == limit.terms().SpanName() {
			n++
		}
	}
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("-%d", n)
}

// inScope reports whether the rule applies to a call, by its Methods, Paths and Except.
func (b *boundRule) inScope(v adapter.View, readings *pathmatch.Readings, log *operatorlog.Log) bool {
	if b.scope.Applies(v, readings) {
		return true
	}
	if pattern := b.scope.Misspelled(v); pattern != "" {
		log.ParameterMisspelled(b.namedFor(v, log).name, pattern, v.Route())
	}
	return false
}

// warnOfNobody warns of rules that limit nobody, because no call is in their scope, and of methods that
// may be misspelled.
func warnOfNobody(log *operatorlog.Log, rules []*boundRule) {
	for _, rule := range rules {
		if why := rule.scope.Never(); why != "" {
			log.LimitsNobody(rule.displayName(), why)
		} else if methods := rule.scope.Unregistered(); len(methods) > 0 {
			log.MethodsUnknown(rule.displayName(), methods)
		}
	}
}

// namedFor returns the rule under the name that it counts a call by.
func (b *boundRule) namedFor(v adapter.View, log *operatorlog.Log) *namedRule {
	if b.fixed != nil {
		return b.fixed
	}
	return b.namedByRoute(v, log)
}

func (b *boundRule) namedByRoute(v adapter.View, log *operatorlog.Log) *namedRule {
	pattern := v.Route()
	if pattern == "" && !b.unrouted.Load() {
		b.lookForRoute(v, log)
	}
	key := route.Of(v.Method(), pattern)
	if isUnsure(v) {
		return b.routes.Peek(key, b.unkept)
	}
	return b.routes.Of(key, b.meet, b.unkept)
}

// isUnsure reports whether the caller may have made up the route.
func isUnsure(v adapter.View) bool {
	unsure, ok := v.(adapter.UnsureRouteView)
	return ok && unsure.RouteUnsure()
}

// knownAs returns the rule under the name by which it counts a call. Unlike namedFor, it keeps
// nothing of a route that was not called.
func (b *boundRule) knownAs(method, pattern string) *namedRule {
	if b.fixed != nil {
		return b.fixed
	}
	return b.routes.Peek(route.Of(method, pattern), b.newNamed)
}

// lookForRoute warns if there is no route because it is not known yet.
func (b *boundRule) lookForRoute(v adapter.View, log *operatorlog.Log) {
	if v, ok := v.(adapter.RoutedView); ok && !v.Routed() && !b.unrouted.Swap(true) {
		log.RouteUnknown(b.limits[0].terms().Phrase())
	}
}

// meet makes the namedRule of a route that an unnamed rule is called for first.
func (b *boundRule) meet(name string) *namedRule {
	p := b.newNamed(name)
	p.tally = b.tallies.OfRule(name)
	if b.onRoute != nil {
		b.onRoute(p)
	}
	return p
}

// unkept makes the namedRule of a route for one call. Routes that callers may have made up are not
// kept, and have no label of their own in Stats.
func (b *boundRule) unkept(name string) *namedRule {
	p := b.newNamed(name)
	p.tally = b.tallies.Others()
	return p
}

// namedRules returns the rule under each name that it has counted by and keeps.
func (b *boundRule) namedRules() []*namedRule {
	if b.fixed != nil {
		return []*namedRule{b.fixed}
	}
	return b.routes.All()
}
