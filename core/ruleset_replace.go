package core

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/rulenames"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
)

// Replace replaces all rules of the set. The version is any text that identifies them, which
// [Limiter.Stats], the log and the audit show. Give changed rules another version. Rules that are
// replaced under the present version are in force too, but neither the log nor the audit says so.
//
// Either all rules are replaced or none. The present ones stay if one of the new rules is wrong, if
// the name of a Guard or a Check is not among them, or if a rule outside the set has the same name
// and another limit. The error joins a *[RuleError] for each mistake. It is logged once, and Stats
// show it until the next success.
//
// Counters keep their use as long as Name, Key, and the Window and Algorithm of the limit stay the
// same, and Mode does not change to or from DryRun. If only Max or Burst changes, the use so far
// counts against the new limit at once. In any other case the new counter starts empty. Permits that
// were leased under another limit are given back within a second. A call in flight ends by the rules
// that it began with: its slots are renewed and freed, and its charge is kept or refunded, in the
// counter that was charged. So if the Window of a Concurrency changes, the calls in flight are not
// counted by the new limit.
func (s *RuleSet) Replace(version string, rules ...Rule) error {
	inside := s.inside()
	if inside == nil {
		return errZeroRuleSet
	}
	log, err := inside.Replace(ruleorigin.Origin{}, version, rules)
	if err != nil {
		s.ReportError(err)
		return err
	}
	log()
	return nil
}

// ReportError reports that the latest rules could not be read, so the present ones stay in force. An
// error that wraps a *[RuleError] reports that they were read, and are wrong. [Limiter.Stats] show
// the error until the next success, and the log has it once until then. A nil error is such a
// success: it reports that the present version is the latest one again. Replace reports its own
// errors and successes.
func (s *RuleSet) ReportError(err error) {
	inside := s.inside()
	if inside == nil {
		panic(errZeroRuleSet)
	}
	problem := ruleorigin.Unread
	if wrong := (*RuleError)(nil); errors.As(err, &wrong) {
		problem = ruleorigin.Wrong
	}
	inside.ReportError(problem, err)()
}

// Replace implements ruleorigin.Set.
func (s *ruleSet) Replace(from ruleorigin.Origin, version string, rules []Rule) (log func(), err error) {
	before, inUse, err := s.take(from, version, rules)
	if err != nil {
		return nil, err
	}
	s.audit()
	if !inUse || version == before {
		return func() {}, nil
	}
	return func() {
		s.registry.log.RulesReplaced(before, version, len(rules), from.Changes)
		s.warnOfNobody()
	}, nil
}

// warnOfNobody warns of attached rules that limit nobody. It holds no lock while it logs, because
// the handler of the log may call the set.
func (s *ruleSet) warnOfNobody() {
	s.mu.Lock()
	living := s.living()
	s.mu.Unlock()
	for _, g := range living {
		warnOfNobody(s.registry.log, g.bound())
	}
}

// ReportError implements ruleorigin.Set.
func (s *ruleSet) ReportError(problem ruleorigin.Problem, err error) (log func()) {
	if err == nil {
		return s.reports.Succeeded()
	}
	return s.reports.Failed(problem, err)
}

// ReportPanic implements ruleorigin.Set.
func (s *ruleSet) ReportPanic(err error) { s.registry.log.Panicked(err) }

// ReportPolled implements ruleorigin.Set.
func (s *ruleSet) ReportPolled(why error, every time.Duration) {
	s.registry.log.RulesPolled(why, every)
}

// take replaces the rules, or returns why it cannot. It returns the version before, and whether a
// guard follows the set.
func (s *ruleSet) take(from ruleorigin.Origin, version string, rules []Rule) (before string, inUse bool, err error) {
	byName, wrong := s.registry.checkSet(rules)
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.present.name
	if wrong == nil {
		next := &setVersion{version, from.Place, from.Key}
		wrong = s.replace(byName, next)
		if wrong != nil && s.anyDropped() {
			wrong = s.replace(byName, next)
		}
	}
	if wrong != nil {
		return "", false, joinRuleErrors(wrong)
	}
	s.reports.Replaced(version, from)
	s.by = actor.Actor{Author: from.Author, Note: from.Note}
	if from.Unaudited {
		s.audited = version
	}
	return before, len(s.followers) > 0, nil
}

// audit writes the present version into the audit, unless that was done. It does nothing if no
// guard follows the set, which may have been made only to be compared with another one.
func (s *ruleSet) audit() {
	if write := s.toAudit(); write != nil {
		write() // without the lock, because it may log
	}
}

// toAudit returns a function that writes the present version into the audit, or nil.
func (s *ruleSet) toAudit() (write func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now, earlier := s.audited, s.present.name, s.audits
	if now == before || len(s.followers) == 0 {
		return nil
	}
	ctx := actor.With(context.Background(), s.by.Author, s.by.Note)
	written := make(chan struct{})
	s.audited, s.audits = now, written
	return func() { s.registry.writeChange(ctx, before, now, earlier, written) }
}

// anyDropped reports whether the service has dropped guards since the garbage collector ran last.
// It runs the collector, because otherwise the time of that run would decide whether a version is
// refused.
func (s *ruleSet) anyDropped() bool {
	before := len(s.followers)
	runtime.GC()
	return len(s.living()) < before
}

// missing returns an error for each attached name that the rules lack.
func (s *ruleSet) missing(attached map[string]string, rules map[string]Rule) (wrong []*RuleError) {
	for _, name := range slices.Sorted(maps.Keys(attached)) {
		if _, ok := rules[name]; !ok {
			wrong = append(wrong, &RuleError{
				Rule: name, Field: "Name", Code: "name_attached", Value: name,
				Why: "is attached" + rulenames.At(attached[name]) + ", and is missing in the new rules",
			})
		}
	}
	return wrong
}

// replace hands new rules to all followers, or returns why it cannot be done.
func (s *ruleSet) replace(rules map[string]Rule, version *setVersion) (wrong []*RuleError) {
	living, attached := s.living(), s.placesByName()
	if wrong = s.missing(attached, rules); wrong != nil {
		return wrong
	}
	next := make(map[*attachment][]*boundRule, len(living))
	var all []*boundRule
	for key, g := range living {
		bound, err := s.bind(key, rules)
		wrong = append(append(wrong, err...), g.checkForwardAuth(bound)...)
		next[g], all = bound, append(all, bound...)
	}
	if wrong != nil {
		return wrong
	}
	at := places{version.place, func(rule string) string { return attached[rule] }}
	for _, conflict := range s.registry.names.Replace(&s.owner, claimsOf(all), at.of) {
		wrong = append(wrong, at.error(conflict))
	}
	if wrong != nil {
		return wrong
	}
	s.registry.marks.Start()
	s.rules, s.present = rules, version
	s.registry.limits.forget() // those of the old rules, which may never be used again
	s.holdTallies(attached)
	for _, rule := range all {
		rule.fixed.tally = s.tallies[rule.Name]
	}
	for g, bound := range next {
		g.following.Store(&followedRules{bound, version})
	}
	return nil
}

// holdTallies keeps the tallies of the attached names, and lets go of the others.
func (s *ruleSet) holdTallies(attached map[string]string) {
	for name, of := range s.tallies {
		if _, ok := attached[name]; !ok {
			s.registry.tallies.Release(of)
			delete(s.tallies, name)
		}
	}
}
