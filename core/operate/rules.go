package operate

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// AttachedRule is a rule of a Guard or a Check: see [Operator.Rules].
type AttachedRule struct {
	// Rule is a copy of the rule in force. Limit is set, also if the rule was made with Seconds.
	Rule core.Rule
	// Names are the names by which the rule counts, sorted. A rule that is named after its routes
	// has one for each route that this process was called for.
	Names []string
	// Place is where the rule was attached, as a path within its module and a line, or where it is
	// written, if it comes from a file with rules. Version is that of its RuleSet, or "".
	Place, Version string
	// CountsBy is the key that the rule counts by, as a file with rules spells it: ip, user,
	// global, header:X-Tenant. It is "" if Rule.Key is any other function than those of package
	// core that take no arguments, and if the rule is Outgoing.
	CountsBy string
	// Traits are what the rule does besides counting calls by its limits, in words such as "skips some
	// calls" and "leases 100".
	Traits []string
	// InHandler reports whether the rule belongs to a Check.
	InHandler bool
	// Outgoing reports whether the rule is for calls that go out. It counts by the key of an
	// outgoing.Rule.
	Outgoing bool
}

// Rules returns the rules in force of all Guards and Checks that the service holds, in the order in
// which they were attached. A rule that several of them share is returned several times. notListed
// is the number of Guards and Checks beyond the first 4,000, which are left out.
func (o *Operator) Rules() (rules []AttachedRule, notListed int, err error) {
	if err := o.made(); err != nil {
		return nil, 0, err
	}
	attached, notListed := o.front.Attached()
	for _, of := range attached {
		slices.Sort(of.Names)
		rules = append(rules, AttachedRule{
			Rule: of.Rule, Names: of.Names, Place: of.Place, Version: of.Version,
			CountsBy: countsBy(&of), Traits: rulefield.Traits(&of.Rule), InHandler: of.InHandler, Outgoing: of.Outgoing,
		})
	}
	return rules, notListed, nil
}

// plainKeys are the names of key functions, as a file with rules spells them, by their addresses.
var plainKeys = map[uintptr]string{
	addressOf(core.ByIP): "ip", addressOf(core.ByUser): "user", addressOf(core.ByHost): "host",
	addressOf(core.ByRoute): "route", addressOf(core.Global): "global",
}

func addressOf(key core.KeyFunc) uintptr { return reflect.ValueOf(key).Pointer() }

// countsBy returns AttachedRule.CountsBy.
func countsBy(of *limiter.AttachedRule[core.Rule]) string {
	switch {
	case of.Outgoing:
		return ""
	case of.Rule.Key != nil:
		return cmp.Or(of.Key, plainKeys[addressOf(of.Rule.Key)])
	case of.Rule.NeedLogin:
		return "user"
	default:
		return "ip"
	}
}
