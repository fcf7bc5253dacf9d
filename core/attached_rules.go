package core

import (
	"context"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
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
	tails := l.keyTailsOf(name)
	if len(tails) == 0 {
		return false, &RuleError{Rule: name, Field: "name", Value: name, Why: "must be that of a rule that is attached to this Limiter"}
	}
	var keys [][]byte
	for tail := range tails {
		keys = append(keys, rediskey.Append(nil, l.keyHead, subject, tail))
	}
	return l.reset(ctx, audit.Reset, name, subject, keys...)
}

// keyTailsOf returns the ends of the keys of all attached rules of a name.
func (l *Limiter) keyTailsOf(name string) map[string]bool {
	tails := make(map[string]bool)
	guards, _ := l.attached.all()
	for _, g := range guards {
		for _, rule := range g.bound() {
			for _, named := range rule.namedRules() {
				if named.name != name {
					continue
				}
				for _, tail := range named.keyTails() {
					tails[tail] = true
				}
			}
		}
	}
	return tails
}
