package core

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core/internal/terms"
)

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
	c.Ban.check(c.add)
	c.checkScope()
	c.checkFailure(sound)
	return c.found
}

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

// checkFailure checks OnStoreError, also for each limit that it may count locally. It leaves out
// limits that are wrong themselves, which is reported elsewhere.
func (c *ruleCheck) checkFailure(sound bool) {
	if why := c.OnStoreError.inside().Check(); why != "" {
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

func (c *ruleCheck) checkNote() {
	if field, _ := c.firstLimit(keepsNotes); c.Note != nil && field == "" {
		c.add("Note", "note_without_log", "a function", "is kept by "+terms.Kinds(keepsNotes)+" only: set Limit to one such as "+terms.Example(keepsNotes))
	}
}

// checkLease checks the Lease against the rule's own limit.
func (c *ruleCheck) checkLease() {
	switch own := c.limit().normal(); {
	case c.Lease == 0:
	case c.Lease < 0 || c.Lease > own.Max:
		c.add("Lease", "lease_range", c.Lease, "must be 0 to the limit's Max")
	case !leases(own.Algorithm.properties()):
		c.add("Lease", "lease_algorithm", c.Lease, "needs "+terms.Kinds(leases))
	}
}

// maxName bounds a name, which every response carries in a header.
const maxName = 128

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

// checkOverrides checks what does not go with Overrides. The plans are compared with the rule's own
// limit if that is sound.
func (c *ruleCheck) checkOverrides(sound bool) {
	if !c.Overrides {
		return
	}
	if c.Name == "" {
		c.add("Overrides", "overrides_without_name", true, "needs a Name, by which overrides are set")
	}
	if c.Lease != 0 {
		c.add("Lease", "lease_and_overrides", c.Lease, "cannot be combined with Overrides: calls with leased permits do not ask Redis, so they would miss an override")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		if limit := c.Plans[name]; sound && limit.wrong() == nil && !limit.sharesCounter(c.limit()) {
			c.add(planField(name), codeNotOverridable, limit, notOverridable)
		}
	}
}

// checkPlans checks Plans, Plan and LimitFor.
func (c *ruleCheck) checkPlans() {
	switch {
	case c.Plans != nil && c.LimitFor != nil:
		c.add("LimitFor", "plans_and_limit_for", "a function", "takes the place of Plans and Plan: set one or the other")
	case len(c.Plans) > 0 && c.Plan == nil:
		c.add("Plan", "no_plan", nil, "must be set with Plans, to say who has which plan")
	case len(c.Plans) == 0 && c.Plan != nil:
		c.add("Plans", "no_plans", nil, "must be set with Plan, to say what each plan allows")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		limit := c.Plans[name]
		if name == "" {
			c.add("Plans", "plan_without_name", name, `has a plan named "", but "" stands for the rule's own limit`)
		}
		if limit == Unlimited {
			continue
		}
		if wrong := limit.wrong(); wrong != nil {
			c.add(planField(name), wrong.Code, limit, wrong.ofLimit())
		}
	}
}

// checkMode checks the Mode, and what does not go with Soft.
func (c *ruleCheck) checkMode() {
	if !c.Mode.known() {
		c.add("Mode", "mode", c.Mode, "must be Enforce, Soft or DryRun")
	}
	if c.Mode != Soft {
		return
	}
	if c.Name == "" {
		c.add("Mode", "soft_without_name", c.Mode, "needs a Name, and all rules of this Name must be Soft")
	}
	if (c.Ban != Ban{}) {
		c.add("Mode", "soft_and_ban", c.Mode, "cannot be combined with Ban, because the rule refuses nobody")
	}
	if c.Lease != 0 {
		c.add("Mode", "soft_and_lease", c.Mode, "cannot be combined with Lease: permits are leased before it is known whether another rule refuses the call")
	}
	if c.OnStoreError == FailClosed {
		c.add("Mode", "soft_and_fail_closed", c.Mode, "cannot be combined with FailClosed, because the rule refuses nobody")
	}
}
