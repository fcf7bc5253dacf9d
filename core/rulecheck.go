package core

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// check finds what is wrong with a rule by itself; nil is nothing.
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
	if r.Note != nil && !r.uses(SlidingLog) {
		return r.wrong("Note", "a function", "is kept by SlidingLog only: set Algorithm")
	}
	if wrong := r.checkLease(); wrong != nil {
		return wrong
	}
	if wrong := r.Ban.check(); wrong != nil {
		wrong.Rule = r.Name
		return wrong
	}
	return r.checkScope()
}

func (r *Rule) wrong(field string, value any, why string) *RuleError {
	return &RuleError{Rule: r.Name, Field: field, Value: value, Why: why}
}

// uses says whether one of the rule's limits is counted by an algorithm.
func (r *Rule) uses(a Algorithm) bool {
	return r.Algorithm == a || slices.ContainsFunc(r.Also, func(l Limit) bool { return l.Algorithm == a })
}

func (r *Rule) checkSpan() *RuleError {
	spans := 0
	for _, set := range [...]bool{r.Seconds != 0, r.Window != 0, r.Calendar != Calendar{}} {
		if set {
			spans++
		}
	}
	switch {
	case spans == 0:
		return r.wrong("Seconds", 0, "a rule needs a span: set Seconds, Window or Calendar")
	case spans > 1 && r.Seconds != 0:
		return r.wrong("Seconds", r.Seconds, "a rule has one span: set one of Seconds, Window and Calendar")
	case spans > 1:
		return r.wrong("Window", r.Window, "a rule has one span: set one of Seconds, Window and Calendar")
	case r.Seconds < 0 || r.Seconds > 366*24*3600:
		return r.wrong("Seconds", r.Seconds, "must be 1 to 31622400 (366 days)")
	}
	return nil
}

// checkLimits looks at the limits themselves. Those of Also must differ from the others in what they count by.
func (r *Rule) checkLimits() *RuleError {
	own := r.limit()
	if _, err := own.compile(); err != nil {
		return r.spell(err.(*RuleError))
	}
	counters := []Limit{own.counter()}
	for _, limit := range r.Also {
		if _, err := limit.compile(); err != nil {
			return r.wrong("Also", limit, err.(*RuleError).Field+" "+err.(*RuleError).Why)
		}
		if slices.Contains(counters, limit.counter()) {
			return r.wrong("Also", limit, "has the span and the algorithm of another limit of this rule, and so its counter")
		}
		counters = append(counters, limit.counter())
	}
	return nil
}

// checkFailure looks at what is to happen when the store fails.
func (r *Rule) checkFailure() *RuleError {
	switch {
	case r.OnStoreError > FallBackLocal:
		return r.wrong("OnStoreError", uint8(r.OnStoreError), "must be FailOpen, FailClosed or FallBackLocal")
	case r.LocalShare == 0:
		return nil
	case !(0 < r.LocalShare && r.LocalShare <= 1): // nor NaN
		return r.wrong("LocalShare", r.LocalShare, "must be above 0, up to 1")
	case r.OnStoreError != FallBackLocal:
		return r.wrong("LocalShare", r.LocalShare, "is for the policy FallBackLocal: set OnStoreError")
	}
	for _, limit := range append([]Limit{r.limit()}, r.Also...) {
		if compiled, err := limit.compile(); err == nil && !r.canShare(&compiled) {
			return r.wrong("LocalShare", r.LocalShare, fmt.Sprintf("of %v is %v", limit, algorithm.ErrTooLarge))
		}
	}
	return nil
}

// canShare says whether the rule's LocalShare of a limit can be counted exactly.
func (r *Rule) canShare(limit *algorithm.Limit) bool {
	_, err := limit.Share(cmp.Or(r.LocalShare, 1))
	return err == nil
}

func (r *Rule) checkLease() *RuleError {
	switch own := r.limit().normal(); {
	case r.Lease == 0:
		return nil
	case r.Lease < 0 || r.Lease > own.Max:
		return r.wrong("Lease", r.Lease, "must be 0 to MaxCount")
	case own.Algorithm != SlidingWindow && own.Algorithm != FixedWindow:
		return r.wrong("Lease", r.Lease, "needs SlidingWindow or FixedWindow")
	}
	return nil
}

// counter is what of a limit makes the counter.
func (l Limit) counter() Limit {
	l = l.normal()
	return Limit{Window: l.Window, Calendar: l.Calendar, Algorithm: l.Algorithm}
}

// spell names a limit's field as the rule spells it.
func (r *Rule) spell(err *RuleError) *RuleError {
	err.Rule = r.Name
	if err.Field == "Max" {
		err.Field = "MaxCount"
	}
	return err
}

// checkScope looks at where the rule applies.
func (r *Rule) checkScope() *RuleError {
	for _, list := range [...]struct {
		field    string
		patterns []string
	}{{"Paths", r.Paths}, {"Except", r.Except}} {
		for _, pattern := range list.patterns {
			if why := badPattern(pattern); why != "" {
				return r.wrong(list.field, pattern, why)
			}
		}
	}
	for _, method := range r.Methods {
		if why := badMethod(method); why != "" {
			return r.wrong("Methods", method, why)
		}
	}
	return nil
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

// checkInside finds what a rule cannot do inside a handler: nobody hears there how the call ended.
func (r *Rule) checkInside() error {
	switch {
	case r.Count != nil:
		return r.wrong("Count", "a function", "needs a middleware, which knows the outcome: use Limiter.AllowN and Limiter.Refund in a handler")
	case r.uses(Concurrency):
		return r.noSlotsInside()
	}
	return nil
}

func (r *Rule) noSlotsInside() *RuleError {
	return r.wrong("Algorithm", Concurrency, "needs a middleware, which knows when a call ends: use Limiter.Hold in a handler")
}
