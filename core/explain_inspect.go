package core

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/route"
)

// maxComputed bounds the limits of LimitFor that an Inspect shows of a rule.
const maxComputed = 16

// inspected identifies the rules that an Inspect shows as one.
type inspected struct {
	name   string
	dryRun bool
}

// ofSubject finds all counters that rules can have for a subject.
func (f *front) ofSubject(subject string) (x *explanation, all []*explained) {
	guards, unlisted := f.registry.attached.all()
	x = f.newExplanation(newInfoView(context.Background(), CallInfo{}, nil), unlisted)
	x.Subject = strings.Clone(subject)
	x.call.user, x.call.userKnown = x.Subject, true
	known := make(map[inspected]*explained)
	for at, g := range guards {
		rules, version, place := g.inForce()
		for _, rule := range rules {
			for _, named := range rule.namedRules() {
				e := newExplained(at, g, rule, version, place)
				e.inspect(named, x.Subject)
				if earlier := known[inspected{e.Name, e.Mode == DryRun}]; earlier != nil {
					earlier.merge(e)
					continue
				}
				known[inspected{e.Name, e.Mode == DryRun}] = e
				all = append(all, e)
			}
		}
	}
	return x, all
}

// inspect looks at the counters of rules.
func (x *explanation) inspect(ctx context.Context, rules []*explained) (Explanation, error) {
	for _, e := range rules {
		x.add(e)
	}
	return x.finish(ctx)
}

// inspect finds the limits that the rule can have under a name.
func (e *explained) inspect(named *namedRule, subject string) {
	e.named, e.Name, e.Subject, e.Applies, e.asked = named, named.name, subject, true, true
	e.owns = []sourcedLimit{{named.limits[0], fromRule}}
	for _, plan := range slices.Sorted(maps.Keys(named.plans)) {
		e.owns = append(e.owns, sourcedLimit{named.plans[plan], fromPlan + plan})
	}
	for _, q := range named.limits[1:] {
		e.also = append(e.also, sourcedLimit{q, fromAlso})
	}
	if e.rule.LimitFor != nil {
		e.addComputed()
	}
}

// addComputed adds the counters of limits that LimitFor returned, and one that stands for those
// that it has not returned yet.
func (e *explained) addComputed() {
	has := func(q *ruleLimit) bool {
		sameCounter := func(s sourcedLimit) bool { return s.ruleLimit != nil && s.counted.KeyTail == q.counted.KeyTail }
		return slices.ContainsFunc(e.owns, sameCounter) || slices.ContainsFunc(e.also, sameCounter)
	}
	for _, q := range e.named.computed.All() {
		if !has(q) && len(e.owns) < 1+maxComputed {
			e.owns = append(e.owns, sourcedLimit{q, fromLimitFor})
		}
	}
	slices.SortFunc(e.owns[1:], func(a, b sourcedLimit) int { return strings.Compare(a.counted.KeyTail, b.counted.KeyTail) })
	e.owns = append(e.owns, sourcedLimit{anyLimit, fromLimitFor})
}

// merge adds what another rule of the same name has.
func (e *explained) merge(other *explained) {
	missing := func(list []sourcedLimit, s sourcedLimit) bool {
		return !slices.ContainsFunc(list, func(t sourcedLimit) bool { return t.same(s) })
	}
	for _, s := range other.owns {
		if missing(e.owns, s) {
			e.owns = append(e.owns, s)
		}
	}
	for _, s := range other.also {
		if missing(e.also, s) {
			e.also = append(e.also, s)
		}
	}
	if e.rule.ban == nil && other.rule.ban != nil { // it holds for all rules of the name that have one
		e.rule, e.named = other.rule, other.named
	}
	e.Routes = append(e.Routes, other.Routes...)
	slices.Sort(e.Routes)
	e.Routes = slices.Compact(e.Routes)
	e.Routes = e.Routes[:min(len(e.Routes), route.MaxNoted)]
}

// same reports whether both are the same limit for the same reason.
func (s sourcedLimit) same(other sourcedLimit) bool {
	if s.ruleLimit == nil || other.ruleLimit == nil {
		return s == other
	}
	return s.limit == other.limit && s.source == other.source
}
