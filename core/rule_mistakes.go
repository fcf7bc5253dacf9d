package core

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// ruleCheck collects the mistakes of a rule.
type ruleCheck struct {
	*Rule
	sound bool // its own limit has no mistake
	found []*RuleError
}

func (c *ruleCheck) add(field, code string, value any, why string) {
	c.found = append(c.found, c.wrong(field, code, value, why))
}

// hasMistake reports whether a mistake of one of these fields was found.
func (c *ruleCheck) hasMistake(fields ...string) bool {
	return slices.ContainsFunc(c.found, func(e *RuleError) bool { return slices.Contains(fields, e.Field) })
}

// valueOf returns the value of a field of the rule.
func valueOf[T any](c *ruleCheck, f *rulefield.Field) T {
	return reflect.ValueOf(c.Rule).Elem().FieldByName(f.Name).Interface().(T)
}

// firstLimit returns the first of the rule's limits whose algorithm has a property, and the field
// that it is in, or "" if there is none.
func (r *Rule) firstLimit(has func(*algorithm.Properties) bool) (field string, limit Limit) {
	by := func(l Limit) bool { return has(l.Algorithm.properties()) }
	if by(r.Limit) {
		return "Limit", r.Limit
	}
	if i := slices.IndexFunc(r.Also, by); i >= 0 {
		return fmt.Sprintf("Also[%d]", i), r.Also[i]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Plans)) {
		if by(r.Plans[name]) {
			return planField(name), r.Plans[name]
		}
	}
	return "", Limit{}
}

func keepsNotes(p *algorithm.Properties) bool { return p.Notes }

func leases(p *algorithm.Properties) bool { return p.Leases }

// cannotBeSettled reports whether costs that are known afterwards cannot be counted. Slots are beside
// limits that can count them.
func cannotBeSettled(p *algorithm.Properties) bool { return !p.Debts && !p.Slots }

func hasSlots(p *algorithm.Properties) bool { return p.Slots }

// checkAlso returns what is wrong with further limits beside a first one.
func checkAlso(own Limit, also []Limit) (found []*RuleError) {
	counters := []terms.Terms{own.terms().Counter()}
	for i, limit := range also {
		field := fmt.Sprintf("Also[%d]", i)
		if wrong := limit.wrong(); wrong != nil {
			found = append(found, &RuleError{Field: field, Code: wrong.Code, Value: limit, Why: wrong.ofLimit()})
		} else if slices.Contains(counters, limit.terms().Counter()) {
			found = append(found, &RuleError{Field: field, Code: codeSameCounter, Value: limit, Why: sameCounter})
		} else {
			counters = append(counters, limit.terms().Counter())
		}
	}
	return found
}

// codeSameCounter and sameCounter say why two limits cannot be counted beside each other.
const (
	codeSameCounter = "same_counter"
	sameCounter     = "has the span and the algorithm of another limit beside it, and so its counter"
)

// codeNotSettleable and notSettleable say why a limit cannot count costs that are known afterwards.
const (
	codeNotSettleable = "estimate_algorithm"
	notSettleable     = "cannot be charged with what does not fit: use SlidingWindow, FixedWindow, CalendarWindow or TokenBucket"
)

// codeLeaseAndEstimate is for limits with a Lease that are to count costs known afterwards.
const codeLeaseAndEstimate = "lease_and_estimate"

// wrongPolicy returns what is wrong with OnStoreError for a limit.
func (r *Rule) wrongPolicy(limit Limit, compiled *algorithm.Limit) []*RuleError {
	why := r.OnStoreError.inside().CheckFor(compiled)
	if why == "" {
		return nil
	}
	return []*RuleError{r.wrong("OnStoreError", "store_policy_limit", r.OnStoreError, fmt.Sprintf("(for %v) %s", limit, why))}
}

func (r *Rule) noSlotsInHandler(field string, limit Limit) *RuleError {
	return r.wrong(field, "slots_in_handler", limit, "needs a middleware, which knows when a call ends: in a handler use Limiter.Slots")
}

// spell replaces the field of an error about a limit by the rule's name for it.
func (r *Rule) spell(err *RuleError) *RuleError {
	err.Rule = r.Name
	switch {
	case err.Field == "Limit":
	case r.Limit != Limit{}:
		err.Field = "Limit." + err.Field
	case err.Field == "Max":
		err.Field = "MaxCount"
	}
	return err
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}

// planField returns the name of a plan's limit in errors.
func planField(name string) string { return fmt.Sprintf("Plans[%q]", name) }
