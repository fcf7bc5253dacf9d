package core

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// check returns what is wrong with the rule by itself, or nil.
func (r *Rule) check() *RuleError {
	if wrong := r.checkSpan(); wrong != nil {
		return wrong
	}
	if wrong := r.checkFailure(); wrong != nil {
		return wrong
	}
	if why := badName(r.Name); why != "" {
		return r.wrong("Name", r.Name, why)
	}
	if wrong := r.checkLimits(); wrong != nil {
		return wrong
	}
	if !utf8.ValidString(r.Message) {
		return r.wrong("Message", r.Message, "must be UTF-8")
	}
	if field, _ := r.firstLimit(keepsNotes); r.Note != nil && field == "" {
		return r.wrong("Note", "a function", "is kept by SlidingLog only: set Limit to one with Log()")
	}
	if wrong := r.checkLease(); wrong != nil {
		return wrong
	}
	if wrong := r.checkOverrides(); wrong != nil {
		return wrong
	}
	if wrong := r.checkMode(); wrong != nil {
		return wrong
	}
	if wrong := r.checkWarn(); wrong != nil {
		return wrong
	}
	if wrong := r.Ban.check(); wrong != nil {
		wrong.Rule = r.Name
		return wrong
	}
	return r.checkScope()
}

// firstLimit returns the first of the rule's limits whose algorithm has a property, and the field
// that it is in, or "" if there is none.
func (r *Rule) firstLimit(has func(*algorithm.Properties) bool) (field string, limit Limit) {
	by := func(l Limit) bool { return has(l.Algorithm.properties()) }
	if by(r.Limit) {
		return "Limit", r.Limit
	}
	if i := slices.IndexFunc(r.Also, by); i >= 0 {
		return "Also", r.Also[i]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Plans)) {
		if by(r.Plans[name]) {
			return planField(name), r.Plans[name]
		}
	}
	return "", Limit{}
}

func keepsNotes(p *algorithm.Properties) bool { return p.Notes }

func hasSlots(p *algorithm.Properties) bool { return p.Slots }

// checkSpan returns what is wrong with the two ways to give a limit, or nil.
func (r *Rule) checkSpan() *RuleError {
	switch {
	case r.Limit != Limit{} && r.Seconds != 0:
		return r.wrong("Limit", r.Limit, "takes the place of Seconds and MaxCount: set one or the other")
	case r.Limit != Limit{} && r.MaxCount != 0:
		return r.wrong("MaxCount", r.MaxCount, "belongs to Seconds: with Limit, set Limit.Max")
	case r.Limit != Limit{}:
		return nil
	case r.Seconds == 0:
		return r.wrong("Seconds", 0, "a rule needs a limit: set Seconds, or Limit")
	case r.Seconds < 0 || r.Seconds > 366*24*3600:
		return r.wrong("Seconds", r.Seconds, "must be 1 to 31622400 (366 days)")
	}
	return nil
}

// checkLimits returns what is wrong with the limits themselves, or nil. Each limit of Also must
// have a counter of its own.
func (r *Rule) checkLimits() *RuleError {
	own := r.limit()
	if _, err := own.compile(); err != nil {
		return r.spell(err.(*RuleError))
	}
	if wrong := checkAlso(own, r.Also); wrong != nil {
		wrong.Rule = r.Name
		return wrong
	}
	return r.checkPlans()
}

// checkAlso returns what is wrong with further limits beside a first one, or nil.
func checkAlso(own Limit, also []Limit) *RuleError {
	counters := []Limit{own.counter()}
	for _, limit := range also {
		if _, err := limit.compile(); err != nil {
			return &RuleError{Field: "Also", Value: limit, Why: err.(*RuleError).ofLimit()}
		}
		if slices.Contains(counters, limit.counter()) {
			return &RuleError{Field: "Also", Value: limit, Why: sameCounter}
		}
		counters = append(counters, limit.counter())
	}
	return nil
}

// sameCounter says why two limits cannot be counted beside each other.
const sameCounter = "has the span and the algorithm of another limit beside it, and so its counter"

// checkFailure returns what is wrong with OnStoreError, or nil.
func (r *Rule) checkFailure() *RuleError {
	if why := r.OnStoreError.check(); why != "" {
		return r.wrong("OnStoreError", r.OnStoreError, why)
	}
	limits := append([]Limit{r.limit()}, r.Also...)
	for _, name := range slices.Sorted(maps.Keys(r.Plans)) {
		limits = append(limits, r.Plans[name])
	}
	for _, limit := range limits {
		compiled, err := limit.compile()
		if err != nil { // Unlimited, or reported by checkLimits
			continue
		}
		if why := r.OnStoreError.checkFor(&compiled); why != "" {
			return r.wrong("OnStoreError", r.OnStoreError, fmt.Sprintf("(for %v) %s", limit, why))
		}
	}
	return nil
}

func (r *Rule) checkLease() *RuleError {
	switch own := r.limit().normal(); {
	case r.Lease == 0:
		return nil
	case r.Lease < 0 || r.Lease > own.Max:
		return r.wrong("Lease", r.Lease, "must be 0 to the limit's Max")
	case !own.Algorithm.properties().Leases:
		return r.wrong("Lease", r.Lease, "needs SlidingWindow or FixedWindow")
	}
	return nil
}

// checkMode returns what is wrong with Mode, or does not go with it, or nil.
func (r *Rule) checkMode() *RuleError {
	switch {
	case !r.Mode.known():
		return r.wrong("Mode", r.Mode, "must be Enforce, Soft or DryRun")
	case r.Mode != Soft:
		return nil
	case r.Name == "":
		return r.wrong("Mode", r.Mode, "needs a Name, and all rules of this Name must be Soft")
	case r.Ban != Ban{}:
		return r.wrong("Mode", r.Mode, "cannot be combined with Ban, because the rule refuses nobody")
	case r.Lease != 0:
		return r.wrong("Mode", r.Mode, "cannot be combined with Lease: permits are leased before it is known whether another rule refuses the call")
	case r.OnStoreError == FailClosed:
		return r.wrong("Mode", r.Mode, "cannot be combined with FailClosed, because the rule refuses nobody")
	}
	return nil
}

// sharesCounter reports whether two limits of one name share a counter.
func (l Limit) sharesCounter(other Limit) bool { return l.counter() == other.counter() }

// counter returns the part of the limit that its counter depends on.
func (l Limit) counter() Limit {
	l = l.normal()
	return Limit{Window: l.Window, Calendar: l.Calendar, Algorithm: l.Algorithm}
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

// maxName bounds a name, which every response carries in a header.
const maxName = 128

func badName(name string) string {
	if len(name) > maxName {
		return "must be at most 128 bytes"
	}
	if !printable(name) {
		return "must be printable ASCII, because headers carry it"
	}
	return ""
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}

// checkInHandler returns what the rule cannot do inside a handler, where nothing reports how the
// call ended, or nil.
func (r *Rule) checkInHandler() *RuleError {
	if r.Count != nil {
		return r.wrong("Count", "a function", "needs a middleware, which knows the outcome: in a handler use Counter and Refund")
	}
	if field, limit := r.firstLimit(hasSlots); field != "" {
		return r.noSlotsInHandler(field, limit)
	}
	return nil
}

func (r *Rule) noSlotsInHandler(field string, limit Limit) *RuleError {
	return r.wrong(field, limit, "needs a middleware, which knows when a call ends: in a handler use Limiter.Slots")
}
