package operate

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// maxComputed bounds the limits of LimitFor that an Inspect shows of a rule.
const maxComputed = 16

// inspected identifies the rules that an Inspect shows as one.
type inspected struct {
	name             string
	dryRun, outgoing bool
}

// ofSubject finds all counters that rules can have for a subject.
func (o *Operator) ofSubject(ctx context.Context, subject string) (x *explanation, all []*explained) {
	x = o.newExplanation(ctx)
	x.Subject = strings.Clone(subject)
	known, rules := make(map[inspected]*explained), x.trial.OfSubject(newCallView(ctx, Call{}, nil), x.Subject)
	calls, _ := x.trial.Notes()
	for at, of := range rules {
		e := newExplained(at, of, &calls[of.Guard])
		e.inspect(x.Subject)
		key := inspected{e.Name, e.Mode == core.DryRun, e.Outgoing}
		if known[key] != nil {
			known[key].merge(e)
			continue
		}
		known[key] = e
		all = append(all, e)
	}
	return x, all
}

// inspect looks at the counters of rules.
func (x *explanation) inspect(ctx context.Context, rules []*explained) (Explanation, error) {
	for _, e := range rules {
		x.add(e)
	}
	shown, err := x.finish(ctx)
	shown.Rules = slices.DeleteFunc(shown.Rules, func(r ExplainedRule) bool { return r.Handle && r.isIdle(true) })
	return shown, err
}

// inspect finds the limits that the rule can have.
func (e *explained) inspect(subject string) {
	e.Subject, e.Applies, e.asked = subject, true, true
	e.owns = []sourcedLimit{{e.of.Counted.Limits[0], fromRule}}
	for _, plan := range slices.Sorted(maps.Keys(e.of.Plans)) {
		e.owns = append(e.owns, sourcedLimit{e.of.Plans[plan], fromPlan + plan})
	}
	if e.addAlso(); e.of.Computes {
		e.addComputed()
	}
}

// addComputed adds the counters of limits that LimitFor returned, and one that stands for those
// that it has not returned yet.
func (e *explained) addComputed() {
	has := func(q *engine.Limit) bool {
		sameCounter := func(s sourcedLimit) bool { return s.Limit != nil && s.KeyTail == q.KeyTail }
		return slices.ContainsFunc(e.owns, sameCounter) || slices.ContainsFunc(e.also, sameCounter)
	}
	for _, q := range e.of.Computed {
		if !has(q) && len(e.owns) < 1+maxComputed {
			e.owns = append(e.owns, sourcedLimit{q, fromLimitFor})
		}
	}
	slices.SortFunc(e.owns[1:], func(a, b sourcedLimit) int { return strings.Compare(a.KeyTail, b.KeyTail) })
	e.owns = append(e.owns, sourcedLimit{anyLimit, fromLimitFor})
}

// merge adds the parts of another rule with the same name.
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
	if e.of.Ban == nil { // its strikes are those of all rules with the name
		e.of.Ban = other.of.Ban
	}
	for _, trait := range other.Traits {
		if !slices.Contains(e.Traits, trait) {
			e.Traits = append(e.Traits, trait)
		}
	}
	e.Routes = append(e.Routes, other.Routes...)
	slices.Sort(e.Routes)
	e.Routes = slices.Compact(e.Routes)
	e.Routes = e.Routes[:min(len(e.Routes), route.MaxNoted)]
}

// same reports whether both are the same limit for the same reason.
func (s sourcedLimit) same(other sourcedLimit) bool {
	if s.Limit == nil || other.Limit == nil {
		return s == other
	}
	return s.source == other.source && s.Compiled.Equal(other.Compiled)
}
