package console

import (
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// policies says what the rules would do if Redis failed now. Rules that refuse nobody anyway are
// left out.
type policies struct {
	Nobody  someRules `json:"limit_nobody"`
	All     someRules `json:"refuse_all"`
	Locally someRules `json:"count_locally"`
}

// someRules holds the number of some rules and the first of their names.
type someRules struct {
	Count int      `json:"count"`
	Names []string `json:"rules"` // at most maxNames
}

const maxNames = 20

// More returns how many rules are not in Names.
func (s someRules) More() int { return s.Count - len(s.Names) }

func (s *someRules) add(name string) {
	if s.Count++; s.Count <= maxNames {
		s.Names = append(s.Names, name)
	}
}

// policiesOf returns the policies of attached rules. Rules of one name and policy count as one.
func policiesOf(rules []operate.AttachedRule) policies {
	none := someRules{Names: []string{}}
	p := policies{none, none, none}
	type policyOf struct {
		name   string
		policy core.StorePolicy
	}
	known := make(map[policyOf]bool)
	for i := range rules {
		r := &rules[i].Rule
		for _, name := range namesOf(&rules[i]) {
			key := policyOf{name, r.OnStoreError}
			if r.Mode != core.Enforce || known[key] {
				continue
			}
			known[key] = true
			switch r.OnStoreError {
			case core.FailOpen:
				p.Nobody.add(name)
			case core.FailClosed:
				p.All.add(name)
			default:
				p.Locally.add(name)
			}
		}
	}
	return p
}

// namesOf returns the names of a rule as the page shows them, or where it is if it has none yet.
func namesOf(r *operate.AttachedRule) (names []string) {
	for _, name := range r.Names {
		names = append(names, show(name))
	}
	if len(names) == 0 {
		names = append(names, "the rule at "+readable(r.Place))
	}
	return names
}

// withoutRedis returns what a rule does while Redis does not answer, in words.
func withoutRedis(r *core.Rule) string {
	switch {
	case r.Mode != core.Enforce || r.OnStoreError == core.FailOpen:
		return "limits nobody"
	case r.OnStoreError == core.FailClosed:
		return "refuses all calls"
	default:
		return "counts in each process (" + r.OnStoreError.String() + ")"
	}
}
