package core

import (
	"context"
	"slices"
)

// AttachedRule is a rule of a Guard or a Check: see [Limiter.Rules].
type AttachedRule struct {
	// Rule is a copy of the rule in force. Limit is set, also if the rule was made with Seconds.
	Rule Rule
	// Names are the names by which the rule counts, sorted. A rule that is named after its routes
	// has one for each route that this process was called for.
	Names []string
	// Place is where the rule was attached, as file:line, or where it stands, if a file with rules
	// says so. Version is that of its RuleSet, or "".
	Place, Version string
	// InHandler reports whether the rule is one of a Check.
	InHandler bool
}

// Rules returns the rules in force of all Guards and Checks that the service holds, in the order in
// which they were attached, and how many Guards and Checks beyond the first 4,000 are left out. A
// rule that several of them have is returned for each.
func (l *Limiter) Rules() (rules []AttachedRule, notListed int) {
	l.mustBeMade()
	guards, notListed := l.attached.all()
	for _, g := range guards {
		bound, version, place := g.inForce()
		for _, b := range bound {
			of := AttachedRule{Rule: b.Rule.clone(), Place: place(b.displayName()), Version: version, InHandler: b.inHandler}
			of.Rule.Limit = b.Rule.limit()
			for _, named := range b.namedRules() {
				of.Names = append(of.Names, named.name)
			}
			slices.Sort(of.Names)
			rules = append(rules, of)
		}
	}
	return rules, notListed
}

// Reset forgets what a subject used of the attached rules of a name, as [Guard.Reset] does for the
// rules of a Guard: of the limits themselves, Also and Plans, but not of LimitFor, and no ban. It
// reports whether there was anything to forget. The error is a *[RuleError] if no attached rule
// counts by this name; the counters of handles have a Reset of their own. Other errors are those of
// [Limiter.Ban].
func (l *Limiter) Reset(ctx context.Context, name, subject string) (changed bool, err error) {
	if err := l.checkOperated(name, subject); err != nil {
		return false, err
	}
	forget, ok := l.forget(name, subject)
	if !ok {
		return false, &RuleError{Rule: name, Field: "name", Value: name, Why: "must be that of a rule that is attached to this Limiter"}
	}
	return forget.reset(ctx, l, name, subject)
}

// forget returns what a reset of the attached rules of a name forgets, or false if there are none.
func (l *Limiter) forget(name, subject string) (forget forgotten, ok bool) {
	guards, _ := l.attached.all()
	for _, g := range guards {
		for _, rule := range g.bound() {
			for _, named := range rule.namedRules() {
				if named.name == name {
					forget.add(l, rule, named, subject)
					ok = true
				}
			}
		}
	}
	return forget, ok
}
