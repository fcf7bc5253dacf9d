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
	// Place is where the rule was attached, as a path within its module and a line, or where it is
	// written, if it comes from a file with rules. Version is that of its RuleSet, or "".
	Place, Version string
	// CountsBy is the key that the rule counts by, as a file with rules spells it: ip, user, global,
	// header:X-Tenant. It is "" if Rule.Key is a function that is in no file, nor one of this package
	// without arguments.
	CountsBy string
	// InHandler reports whether the rule belongs to a Check.
	InHandler bool
}

// Rules returns the rules in force of all Guards and Checks that the service holds, in the order in
// which they were attached. A rule that several of them have is returned for each. notListed is the
// number of Guards and Checks beyond the first 4,000, which are left out.
func (l *Limiter) Rules() (rules []AttachedRule, notListed int) {
	l.mustBeMade()
	guards, notListed := l.attached.all()
	for _, g := range guards {
		bound, version, place := g.inForce()
		for _, b := range bound {
			of := AttachedRule{Rule: b.Rule.clone(), Place: place(b.displayName()), Version: version, InHandler: b.inHandler}
			of.CountsBy = b.countsBy(g.writtenKey(b.displayName()))
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

// Reset forgets what a subject has used of the attached rules of a name, as [Guard.Reset] does for
// the rules of a Guard. It covers a rule's own limit, Also and Plans. It neither resets limits from
// LimitFor nor ends a ban (see [Limiter.Unban]). It reports whether there was anything to forget.
//
// The error is a *[RuleError] if no attached rule counts by this name. The counters of handles have
// a Reset of their own. Other errors are those of [Limiter.Ban].
func (l *Limiter) Reset(ctx context.Context, name, subject string) (changed bool, err error) {
	if err := l.checkOperated(name, subject); err != nil {
		return false, err
	}
	forget, ok := l.forget(name, subject)
	if !ok {
		return false, &RuleError{Rule: name, Field: "name", Value: name, Why: "must be the name of a rule that is attached to this Limiter"}
	}
	return forget.reset(ctx, l, name, subject)
}

// forget returns the keys that Reset deletes for the attached rules of a name. ok is false if there
// are no such rules.
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
