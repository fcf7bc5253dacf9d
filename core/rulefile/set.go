package rulefile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/accesslimit/accesslimit/core"
)

// Set holds the rules of the files that were loaded together. It does not change and is safe for
// concurrent use. Make one with [Load].
type Set struct {
	limiter *core.Limiter
	rules   map[string]placedRule
}

// placedRule is a rule and where it stands.
type placedRule struct {
	core.Rule
	place Place
}

// Names returns the names of the rules, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.rules)) }

// Place returns where a rule stands, or the zero Place if there is no such rule.
func (s *Set) Place(name string) Place { return s.rules[name].place }

// Rule returns a copy of a rule, for functions that take a [core.Rule], and whether there is one.
func (s *Set) Rule(name string) (core.Rule, bool) {
	placed, ok := s.rules[name]
	if !ok {
		return core.Rule{}, false
	}
	r := placed.Rule
	r.Also, r.Plans = slices.Clone(r.Also), maps.Clone(r.Plans)
	r.Paths, r.Except, r.Methods = slices.Clone(r.Paths), slices.Clone(r.Except), slices.Clone(r.Methods)
	return r, true
}

// Guard returns a Guard of the rules of these names, on the Limiter of the Set. The adapters' With
// attaches it. Several rules are decided together, all charged or none. A name that the files do
// not have is an error, and so is one that stands for another limit on the Limiter already.
func (s *Set) Guard(names ...string) (*core.Guard, error) {
	var rules []core.Rule
	for _, name := range names {
		rule, ok := s.Rule(name)
		if !ok {
			return nil, fmt.Errorf("rulefile: no rule %s%s in the files; their rules: %s",
				quote(name), didYouMean(name, s.Names()), list(s.Names()))
		}
		rules = append(rules, rule)
	}
	guard, err := s.limiter.Guard(rules...)
	return guard, s.placed(err)
}

// placed returns an error of core with the place of the rule that it is about.
func (s *Set) placed(err error) error {
	var wrong *core.RuleError
	if !errors.As(err, &wrong) || s.rules[wrong.Rule].place == (Place{}) {
		return err
	}
	return &Error{
		Place: s.Place(wrong.Rule), Rule: wrong.Rule, within: "rule " + quote(wrong.Rule),
		Err: &fieldError{fieldOf(wrong.Field) + ": " + wrong.Why, wrong},
	}
}

// MustGuard is like [Set.Guard] but panics if there is an error.
func (s *Set) MustGuard(names ...string) *core.Guard {
	guard, err := s.Guard(names...)
	if err != nil {
		panic(err)
	}
	return guard
}
