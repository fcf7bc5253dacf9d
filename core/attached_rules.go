package core

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/rulefield"
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
	// Traits are what the rule does besides counting calls by its limits, in words such as "skips some
	// calls" and "leases 100".
	Traits []string
	// InHandler reports whether the rule belongs to a Check.
	InHandler bool
}

// Rules returns the rules in force of all Guards and Checks that the service holds, in the order in
// which they were attached. A rule that several of them have is returned for each. notListed is the
// number of Guards and Checks beyond the first 4,000, which are left out.
func (l *Limiter) Rules() (rules []AttachedRule, notListed int) {
	guards, notListed := l.mustFront().registry.attached.All()
	for _, g := range guards {
		bound, version, place := g.inForce()
		for _, b := range bound {
			of := AttachedRule{Rule: b.Rule.clone(), Place: place(b.displayName()), Version: version, InHandler: b.inHandler}
			of.CountsBy = b.countsBy(g.writtenKey(b.displayName()))
			of.Traits = rulefield.Traits(&of.Rule)
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
