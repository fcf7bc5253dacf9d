package core

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limittext"
)

// Check returns every mistake of the rule: those that no Limiter accepts, and unless l is nil, those
// that l does not accept because of its Options. What depends on the rule's own limit is not checked
// if that is wrong. Whether other rules of this Name have another limit is known only when the rule
// is attached.
//
// Each mistake has a Code, so that a service can say in its own words what is wrong.
func (r *Rule) Check(l *Limiter) []*RuleError {
	f := l.front()
	if f == nil {
		return r.check()
	}
	return f.registry.check(r)
}

// ruleCheck collects the mistakes of a rule.
type ruleCheck struct {
	*Rule
	found []*RuleError
}

func (c *ruleCheck) add(field, code string, value any, why string) {
	c.found = append(c.found, c.wrong(field, code, value, why))
}

// check returns what is wrong with the rule by itself.
func (r *Rule) check() []*RuleError {
	c := &ruleCheck{Rule: r}
	sound := c.checkOwn()
	c.checkTexts()
	c.checkAlso(sound)
	c.checkPlans()
	if sound {
		c.checkNote()
		c.checkLease()
	}
	c.checkOverrides(sound)
	c.checkMode()
	c.checkWarn()
	c.checkBan()
	c.checkScope()
	c.checkFailure(sound)
	return c.found
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

func hasSlots(p *algorithm.Properties) bool { return p.Slots }

// checkOwn checks the rule's own limit. It reports whether it is sound.
func (c *ruleCheck) checkOwn() (sound bool) {
	hasLimit := c.Limit != (Limit{})
	switch {
	case hasLimit && c.Seconds != 0:
		c.add("Limit", "limit_and_seconds", c.Limit, "takes the place of Seconds and MaxCount: set one or the other")
	case hasLimit && c.MaxCount != 0:
		c.add("MaxCount", "limit_and_max_count", c.MaxCount, "belongs to Seconds: with Limit, set Limit.Max")
	case !hasLimit && c.Seconds == 0:
		c.add("Seconds", "no_limit", 0, "a rule needs a limit: set Seconds, or Limit")
	case !hasLimit && (c.Seconds < 0 || c.Seconds > 366*24*3600):
		c.add("Seconds", "seconds_range", c.Seconds, "must be 1 to 31622400 (366 days)")
	default:
		own := c.limit()
		wrong := own.wrong()
		if wrong != nil {
			c.found = append(c.found, c.spell(wrong))
		}
		return wrong == nil
	}
	return false
}

// checkTexts checks the Name and the Message.
func (c *ruleCheck) checkTexts() {
	switch {
	case len(c.Name) > maxName:
		c.add("Name", "name_long", c.Name, "must be at most 128 bytes")
	case !printable(c.Name):
		c.add("Name", "name_form", c.Name, "must be printable ASCII, because headers carry it")
	}
	if !utf8.ValidString(c.Message) {
		c.add("Message", "message_form", c.Message, "must be UTF-8")
	}
}

// checkAlso checks the further limits. Each must have a counter of its own.
func (c *ruleCheck) checkAlso(sound bool) {
	own := Limit{} // which has no limit's counter
	if sound {
		own = c.limit()
	}
	for _, wrong := range checkAlso(own, c.Also) {
		wrong.Rule = c.Name
		c.found = append(c.found, wrong)
	}
}

// checkAlso returns what is wrong with further limits beside a first one.
func checkAlso(own Limit, also []Limit) (found []*RuleError) {
	counters := []Limit{own.counter()}
	for i, limit := range also {
		field := fmt.Sprintf("Also[%d]", i)
		if wrong := limit.wrong(); wrong != nil {
			found = append(found, &RuleError{Field: field, Code: wrong.Code, Value: limit, Why: wrong.ofLimit()})
		} else if slices.Contains(counters, limit.counter()) {
			found = append(found, &RuleError{Field: field, Code: codeSameCounter, Value: limit, Why: sameCounter})
		} else {
			counters = append(counters, limit.counter())
		}
	}
	return found
}

// codeSameCounter and sameCounter say why two limits cannot be counted beside each other.
const (
	codeSameCounter = "same_counter"
	sameCounter     = "has the span and the algorithm of another limit beside it, and so its counter"
)

// checkFailure checks OnStoreError, also for each limit that it may count locally. What is wrong
// with a limit itself is reported elsewhere.
func (c *ruleCheck) checkFailure(sound bool) {
	if why := c.OnStoreError.check(); why != "" {
		c.add("OnStoreError", "store_policy_share", c.OnStoreError, why)
		return
	}
	var limits []Limit
	if sound {
		limits = append(limits, c.limit())
	}
	limits = append(limits, c.Also...)
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		limits = append(limits, c.Plans[name])
	}
	for _, limit := range limits {
		if compiled, err := limit.compile(); err == nil {
			c.found = append(c.found, c.wrongPolicy(limit, &compiled)...)
		}
	}
}

// wrongPolicy returns what is wrong with OnStoreError for a limit.
func (r *Rule) wrongPolicy(limit Limit, compiled *algorithm.Limit) []*RuleError {
	why := r.OnStoreError.checkFor(compiled)
	if why == "" {
		return nil
	}
	return []*RuleError{r.wrong("OnStoreError", "store_policy_limit", r.OnStoreError, fmt.Sprintf("(for %v) %s", limit, why))}
}

func (c *ruleCheck) checkNote() {
	if field, _ := c.firstLimit(keepsNotes); c.Note != nil && field == "" {
		c.add("Note", "note_without_log", "a function", "is kept by "+limittext.Kinds(keepsNotes)+" only: set Limit to one such as "+limittext.Example(keepsNotes))
	}
}

// checkLease checks the Lease against the rule's own limit.
func (c *ruleCheck) checkLease() {
	switch own := c.limit().normal(); {
	case c.Lease == 0:
	case c.Lease < 0 || c.Lease > own.Max:
		c.add("Lease", "lease_range", c.Lease, "must be 0 to the limit's Max")
	case !leases(own.Algorithm.properties()):
		c.add("Lease", "lease_algorithm", c.Lease, "needs "+limittext.Kinds(leases))
	}
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

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}

// checkInHandler returns what the rule cannot do inside a handler, where nothing reports how the
// call ended.
func (r *Rule) checkInHandler() []*RuleError {
	c := &ruleCheck{Rule: r}
	if r.Count != nil {
		c.add("Count", "count_in_handler", "a function", "needs a middleware, which knows the outcome: in a handler use Counter and Refund")
	}
	if field, limit := r.firstLimit(hasSlots); field != "" {
		c.found = append(c.found, r.noSlotsInHandler(field, limit))
	}
	return c.found
}

func (r *Rule) noSlotsInHandler(field string, limit Limit) *RuleError {
	return r.wrong(field, "slots_in_handler", limit, "needs a middleware, which knows when a call ends: in a handler use Limiter.Slots")
}
