package core

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/codeplace"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// RuleSet holds rules by their names, and replaces them while the service runs. It is for limits
// that are kept in a database or a configuration service; package rulefile reads them from files.
// Make a set with [Limiter.RuleSet] when the service starts. It is safe for concurrent use.
//
//	set, err := limiter.RuleSet(rules...)
//	router.Use(ginlimit.With(set.MustGuard("api")))
//	...
//	err = set.Replace("8", changed...)
//
// The guards of a set follow it: they always use its present rules. One [Guard.Check] is decided by
// the rules of one version, even while they are replaced. What belongs to that call later, its
// slots, refunds and outcome, goes by the same version. Two middlewares around one handler may use
// two versions.
type RuleSet struct {
	limiter  *Limiter // of the guards
	registry *registry
	owner    nameOwner

	mu        sync.Mutex // held while rules are attached or replaced
	rules     map[string]Rule
	present   *setVersion
	followers map[followerKey]follower
	tallies   map[string]*tally.Tally
	stats     RuleSetStats    // without Version and Names
	audited   string          // the latest version that was given to the audit
	audits    <-chan struct{} // closed when that is done
	by        actor.Actor     // the author of the present version, if known
	reported  map[string]bool // the errors that were logged since the last success
}

// followerKey is what a Guard that follows a set was made for.
type followerKey struct {
	names     string // one on each line
	inHandler bool
}

func (k followerKey) each() []string { return strings.Split(k.names, "\n") }

// follower is a Guard that follows a set. The pointer is weak, because a service may make guards
// while it runs, and drop them.
type follower struct {
	guard weak.Pointer[Guard]
	place string // where it was made
}

// RuleSet returns a RuleSet of these rules. Each needs a Name of its own. A set may begin empty,
// and get its first rules by [RuleSet.Replace]. The error joins a *[RuleError] for each mistake.
func (l *Limiter) RuleSet(rules ...Rule) (*RuleSet, error) {
	if !l.made() {
		return nil, errNoLimiter
	}
	byName, wrong := l.registry.checkSet(rules)
	if len(wrong) > 0 {
		return nil, joinRuleErrors(wrong)
	}
	return &RuleSet{
		limiter: l, registry: &l.registry, rules: byName, present: new(setVersion),
		followers: make(map[followerKey]follower), tallies: make(map[string]*tally.Tally),
		stats: RuleSetStats{Since: time.Now()},
	}, nil
}

// Guard returns a Guard of the rules of these names. They are decided together: either all are
// charged or none. The Guard follows the set: when [RuleSet.Replace] returns, its next calls are
// decided by the new rules. The error is a *[RuleError] if the set lacks a name, or if a name
// stands for another limit on the Limiter already. The adapters' With attaches the Guard. Guard
// returns the same Guard for the same names, as long as the service holds it.
//
// As long as the service holds the Guard, its names are attached: rules that lack one of them
// cannot replace the present ones.
func (s *RuleSet) Guard(names ...string) (*Guard, error) { return s.guard(names, false) }

// MustGuard is like Guard but panics if there is an error.
func (s *RuleSet) MustGuard(names ...string) *Guard { return orPanic(s.Guard(names...)) }

// Check returns a [Check] of the rules of these names, which follows the set as a Guard does. Rules
// that [Limiter.Check] refuses are errors here too, and in a later Replace.
func (s *RuleSet) Check(names ...string) (*Check, error) {
	g, err := s.guard(names, true)
	if err != nil {
		return nil, err
	}
	return &Check{g}, nil
}

// MustCheck is like Check but panics if there is an error.
func (s *RuleSet) MustCheck(names ...string) *Check { return orPanic(s.Check(names...)) }

func (s *RuleSet) guard(names []string, inHandler bool) (*Guard, error) {
	switch {
	case !s.made():
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
			return nil, &RuleError{Rule: name, Field: "Name", Value: name, Why: "is not in the set; its rules: " + s.list()}
		}
		own[i] = rule.Name
	}
	key := followerKey{strings.Join(own, "\n"), inHandler}
	if g := s.followers[key].guard.Value(); g != nil {
		return g, nil
	}
	return s.attach(key)
}

// made reports whether a Limiter made the set.
func (s *RuleSet) made() bool { return s != nil && s.registry != nil }

func (s *RuleSet) list() string {
	if len(s.rules) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(s.rules)), ", ")
}

// attach makes a Guard that follows the set.
func (s *RuleSet) attach(key followerKey) (*Guard, error) {
	rules, wrong := s.bind(key, s.rules)
	if wrong != nil {
		return nil, wrong
	}
	here := codeplace.OfCaller()
	at := places{s.present.place, func(string) string { return here }}
	if conflict := s.registry.names.claim(&s.owner, rules, at.of); conflict != nil {
		return nil, at.error(conflict)
	}
	s.registry.watchBans(rules)
	for _, rule := range rules {
		if s.tallies[rule.Name] == nil {
			s.tallies[rule.Name] = s.registry.tallies.Hold(rule.Name)
		}
		rule.fixed.tally = s.tallies[rule.Name]
	}
	g := &Guard{limiter: s.limiter}
	g.following.Store(&followedRules{rules, s.present})
	s.registry.attached.add(&g.attachment)
	s.followers[key] = follower{weak.Make(g), here}
	s.registry.sets.add(s)
	return g, nil
}

// bind prepares the rules of a follower, or returns what is wrong with them.
func (s *RuleSet) bind(key followerKey, rules map[string]Rule) (bound []*boundRule, wrong *RuleError) {
	sameName := make(map[string]int)
	for _, name := range key.each() {
		r := rules[name]
		if key.inHandler {
			if wrong := r.checkInHandler(); wrong != nil {
				return nil, wrong
			}
		}
		rule := bind(r, sameName, s.registry.tallies)
		rule.inHandler = key.inHandler
		bound = append(bound, rule)
	}
	return bound, nil
}

// living returns the followers that the service still holds, and forgets the others.
func (s *RuleSet) living() map[followerKey]*attachment {
	living := make(map[followerKey]*attachment)
	for key, follower := range s.followers {
		if g := follower.guard.Value(); g != nil {
			living[key] = &g.attachment
		} else {
			delete(s.followers, key)
		}
	}
	return living
}

// currentStats returns what Stats shows of the set.
func (s *RuleSet) currentStats() RuleSetStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Version, stats.Names = s.present.name, slices.Sorted(maps.Keys(s.tallies))
	return stats
}

// attached returns the names of the followers, and where each of them was attached.
func (s *RuleSet) attached() map[string]string {
	places := make(map[string]string)
	for key, follower := range s.followers {
		for _, name := range key.each() {
			if place, ok := places[name]; !ok || follower.place < place {
				places[name] = follower.place
			}
		}
	}
	return places
}

// places are where the rules of a set stand, if that is known, and where they were attached.
type places struct{ known, attached func(rule string) string }

func (p places) of(rule string) string {
	if p.known != nil {
		return p.known(rule)
	}
	return "in a RuleSet, attached at " + p.attached(rule)
}

// error returns a conflict of a rule of the set. If the place of the rule is known, the reader of
// the error knows it too.
func (p places) error(c *nameConflict) *RuleError {
	if p.known != nil {
		return c.error("")
	}
	return c.error(p.of(c.own.rule))
}
