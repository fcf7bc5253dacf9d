package core

import (
	"maps"
	"slices"
	"strings"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/codeplace"
)

// Guard returns a Guard of the rules of these names. They are decided together: either all are
// charged or none. The Guard follows the set: when [RuleSet.Replace] returns, its next calls are
// decided by the new rules. The error is a *[RuleError] if the set lacks a name, or if a name
// stands for another limit on the Limiter already. The adapters' With attaches the Guard. Guard
// returns the same Guard for the same names, as long as the service holds it.
//
// As long as the service holds the Guard, its names are attached: rules that lack one of them
// cannot replace the present ones.
func (s *RuleSet) Guard(names ...string) (*Guard, error) { return s.inside().guard(names, false) }

// MustGuard is like Guard but panics if there is an error.
func (s *RuleSet) MustGuard(names ...string) *Guard { return orPanic(s.Guard(names...)) }

// Check returns a [Check] of the rules of these names, which follows the set as a Guard does. Rules
// that [Limiter.Check] refuses are errors here too, and in a later Replace.
func (s *RuleSet) Check(names ...string) (*Check, error) {
	g, err := s.inside().guard(names, true)
	if err != nil {
		return nil, err
	}
	return &Check{g}, nil
}

// MustCheck is like Check but panics if there is an error.
func (s *RuleSet) MustCheck(names ...string) *Check { return orPanic(s.Check(names...)) }

func (s *ruleSet) guard(names []string, inHandler bool) (*Guard, error) {
	switch {
	case s == nil:
		return nil, errZeroRuleSet
	case len(names) == 0:
		return nil, &RuleError{Field: "names", Value: names, Why: "must be at least one"}
	}
	defer s.warnOfNobody()
	defer s.audit()
	s.mu.Lock()
	defer s.mu.Unlock()
	own := make([]string, len(names)) // a framework may have lent the names
	for i, name := range names {
		rule, ok := s.rules[name]
		if !ok {
			return nil, &RuleError{Rule: name, Field: "Name", Code: "name_unknown", Value: name, Why: "is not in the set; its rules: " + s.list()}
		}
		own[i] = rule.Name
	}
	key := followerKey{strings.Join(own, "\n"), inHandler}
	if g := s.followers[key].guard.Value(); g != nil {
		return g, nil
	}
	return s.attach(key)
}

func (s *ruleSet) list() string {
	if len(s.rules) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(s.rules)), ", ")
}

// attach makes a Guard that follows the set.
func (s *ruleSet) attach(key followerKey) (*Guard, error) {
	rules, wrong := s.bind(key, s.rules)
	if wrong != nil {
		return nil, joinRuleErrors(wrong)
	}
	here := codeplace.OfCaller()
	at := places{s.present.place, func(string) string { return here }}
	if conflict := s.registry.names.Claim(&s.owner, claimsOf(rules), at.of); conflict != nil {
		return nil, at.error(conflict)
	}
	s.registry.marks.Start()
	for _, rule := range rules {
		if s.tallies[rule.Name] == nil {
			s.tallies[rule.Name] = s.registry.tallies.Hold(rule.Name)
		}
		rule.fixed.tally = s.tallies[rule.Name]
	}
	g := &Guard{front: s.front}
	g.following.Store(&followedRules{rules, s.present})
	s.registry.list(&g.attachment)
	s.followers[key] = follower{weak.Make(g), here}
	s.registry.sets.Add(s)
	return g, nil
}
