package core

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Overridable implements service.Front.
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

// Override implements service.Front.
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
