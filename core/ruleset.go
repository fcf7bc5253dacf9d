package core

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/rulenames"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
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
// the rules of one version, even while they are replaced. The slots, refunds and outcome of
// that call go by the same version. Two middlewares around one handler may use two versions.
type RuleSet ruleorigin.RuleSet[Rule]

// ruleSet is a RuleSet, as its methods and package rulefile use it.
type ruleSet struct {
	front    *front // of the guards
	registry *registry
	owner    rulenames.Owner

	mu        sync.Mutex // held while rules are attached or replaced
	rules     map[string]Rule
	present   *setVersion
	followers map[followerKey]follower
	tallies   map[string]*tally.Tally
	reports   *ruleorigin.Reports
	audited   string          // the latest version that was given to the audit
	audits    <-chan struct{} // closed when that is done
	by        actor.Actor     // the author of the present version, if known
}

// followerKey is what a Guard that follows a set was made for.
type followerKey struct {
	names     string // one on each line
	inHandler bool
}

func (k followerKey) each() []string { return strings.Split(k.names, "\n") }

// follower is a Guard that follows a set. The pointer is weak, because a service may make guards
// while it runs, and drop them: frameworks do not say when they drop a middleware. A set that kept
// the guard would keep its names attached for ever, and refuse every version without them.
type follower struct {
	guard weak.Pointer[Guard]
	place string // where it was made
}

// RuleSet returns a RuleSet of these rules. Each needs a Name of its own. A set may begin empty,
// and get its first rules by [RuleSet.Replace]. The error joins a *[RuleError] for each mistake.
func (l *Limiter) RuleSet(rules ...Rule) (*RuleSet, error) {
	f := l.front()
	if f == nil {
		return nil, errNoLimiter
	}
	byName, wrong := f.registry.checkSet(rules)
	if len(wrong) > 0 {
		return nil, joinRuleErrors(wrong)
	}
	return (*RuleSet)(ruleorigin.New(&ruleSet{
		front: f, registry: &f.registry, rules: byName, present: new(setVersion),
		followers: make(map[followerKey]follower), tallies: make(map[string]*tally.Tally), reports: ruleorigin.NewReports(f.registry.log),
	})), nil
}

// inside returns what the set has inside, or nil if no Limiter made it.
func (s *RuleSet) inside() *ruleSet {
	inside, _ := (*ruleorigin.RuleSet[Rule])(s).Inside().(*ruleSet)
	return inside
}

// bind prepares the rules of a follower, or returns what is wrong with them.
func (s *ruleSet) bind(key followerKey, rules map[string]Rule) (bound []*boundRule, wrong []*RuleError) {
	var own []Rule
	for _, name := range key.each() {
		r := rules[name]
		own = append(own, r)
		if key.inHandler {
			wrong = append(wrong, r.checkInHandler()...)
		}
	}
	return s.registry.bind(own, key.inHandler), wrong
}

// living returns the followers that the service still holds, and forgets the others.
func (s *ruleSet) living() map[followerKey]*attachment {
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

// State implements ruleorigin.Followed.
func (s *ruleSet) State() ruleorigin.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.reports.State()
	state.Names = slices.Sorted(maps.Keys(s.tallies))
	return state
}

// placesByName returns where each name of the followers was attached.
func (s *ruleSet) placesByName() map[string]string {
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
func (p places) error(c *rulenames.Conflict[Limit]) *RuleError {
	if p.known != nil {
		return nameError(c, "")
	}
	return nameError(c, p.of(c.Own.Rule))
}
