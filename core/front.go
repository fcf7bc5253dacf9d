package core

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// front is what a limiter has in the terms of this package. The rest of the limiter is in its
// limiter.Parts, which the packages beside this one reach, too.
type front struct {
	*limiter.Parts
	callParts
	calls    callPool
	directs  directPool
	registry registry
}

// front returns the front of a limiter, or nil if New did not make it.
func (l *Limiter) front() *front {
	f, _ := (*limiter.Limiter[Rule])(l).Front().(*front)
	return f
}

// mustFront returns the front of a limiter. It panics if New did not make it.
func (l *Limiter) mustFront() *front {
	f := l.front()
	if f == nil {
		panic(errNoLimiter)
	}
	return f
}

// Obeying implements limiter.Front.
func (f *front) Obeying() (banned, overridden []string) { return f.registry.names.Obeying() }

// Attached implements limiter.Front.
func (f *front) Attached() (rules []limiter.AttachedRule[Rule], notListed int) {
	guards, notListed := f.registry.attached.All()
	for _, g := range guards {
		bound, version, place := g.inForce()
		for _, b := range bound {
			name := b.displayName()
			of := limiter.AttachedRule[Rule]{Rule: b.Rule.clone(), Place: place(name), Version: version, Key: g.writtenKey(name), InHandler: b.inHandler}
			of.Rule.Limit = b.Rule.limit()
			for _, named := range b.namedRules() {
				of.Names = append(of.Names, named.name)
			}
			rules = append(rules, of)
		}
	}
	return rules, notListed
}

// CheckSubject implements limiter.Front.
func (f *front) CheckSubject(name, subject string) error { return checkSubject(name, subject) }

// Failed implements limiter.Front.
func (f *front) Failed(name string, err error) error { return f.failures.errorOf(name, err) }

// IgnoresBans implements limiter.Front.
func (f *front) IgnoresBans(name string) bool { return f.registry.names.IgnoresBans(name) }

// BanAfter implements limiter.Front.
func (f *front) BanAfter(name string) int { return f.registry.names.BanAfter(name) }

// Overridable implements limiter.Front.
func (f *front) Overridable(name string) (own *algorithm.Limit, err error) {
	limit, err := f.overridable(name)
	if err != nil {
		return nil, err
	}
	return &prepare(limit).compiled, nil
}

// overridable returns the rule's own limit.
func (f *front) overridable(name string) (own Limit, err error) {
	own, ok := f.registry.names.Overridable(name)
	if !ok {
		return Limit{}, &RuleError{
			Rule: name, Field: "Overrides", Value: false,
			Why: "must be set in a rule of this name that is attached to this Limiter, or by WithOverrides of a handle",
		}
	}
	return own, nil
}

// Override implements limiter.Front.
func (f *front) Override(name string, permits, burst int) (algorithm.Override, error) {
	own, err := f.overridable(name)
	if err != nil {
		return algorithm.Override{}, err
	}
	compiled := &prepare(own).compiled
	own.Max, own.Burst = permits, burst
	if _, err := own.compile(); err != nil {
		wrong := *err.(*RuleError)
		wrong.Rule, wrong.Field = name, "Override."+wrong.Field
		return algorithm.Override{}, &wrong
	}
	stored, err := compiled.Override(int64(permits), int64(burst))
	if err != nil {
		return stored, &RuleError{Rule: name, Field: "Override.Max", Value: permits, Why: err.Error()}
	}
	return stored, nil
}
