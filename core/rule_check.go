package core

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// check returns what is wrong with the rule by itself: at first by the table of fields.
func (r *Rule) check() []*RuleError {
	c := &ruleCheck{Rule: r}
	for _, m := range rulefield.Check(r) {
		c.add(m.Field, m.Code, m.Value, m.Why)
	}
	c.checkOwn()
	for i := range rulefield.Table {
		f := &rulefield.Table[i]
		if check := formChecks[f.Form]; check != nil {
			check(c, f)
		}
	}
	if c.sound {
		c.checkNote()
		c.checkLease()
		c.checkEstimate()
	}
	return c.found
}

// formChecks check values by their form. The bounds of numbers and the relations between fields are
// in the table.
var formChecks = map[rulefield.Form]func(*ruleCheck, *rulefield.Field){
	rulefield.Name:        (*ruleCheck).checkName,
	rulefield.Text:        (*ruleCheck).checkText,
	rulefield.Fractions:   (*ruleCheck).checkFractions,
	rulefield.Limits:      (*ruleCheck).checkLimits,
	rulefield.Plans:       (*ruleCheck).checkPlans,
	rulefield.Ban:         func(c *ruleCheck, _ *rulefield.Field) { c.Ban.check(c.add) },
	rulefield.Mode:        (*ruleCheck).checkMode,
	rulefield.Patterns:    (*ruleCheck).checkPatterns,
	rulefield.Methods:     (*ruleCheck).checkMethods,
	rulefield.StorePolicy: (*ruleCheck).checkStorePolicy,
}

// checkOwn checks the rule's own limit, unless one of its fields is wrong already.
func (c *ruleCheck) checkOwn() {
	switch {
	case c.Limit == (Limit{}) && c.Seconds == 0:
		c.add("Seconds", rulefield.NoLimit.Code, 0, rulefield.NoLimit.InGo())
	case c.hasMistake("Limit", "Seconds", "MaxCount"):
	default:
		own := c.limit()
		wrong := own.wrong()
		if c.sound = wrong == nil; !c.sound {
			c.found = append(c.found, c.spell(wrong))
		}
	}
}

func (c *ruleCheck) checkName(f *rulefield.Field) {
	switch name := valueOf[string](c, f); {
	case len(name) > maxName:
		c.add(f.Name, "name_long", name, "must be at most 128 bytes")
	case !printable(name):
		c.add(f.Name, "name_form", name, "must be printable ASCII, because headers carry it")
	}
}

func (c *ruleCheck) checkText(f *rulefield.Field) {
	if text := valueOf[string](c, f); !utf8.ValidString(text) {
		c.add(f.Name, f.File()+"_form", text, "must be UTF-8")
	}
}

// checkFractions checks fractions of a limit.
func (c *ruleCheck) checkFractions(f *rulefield.Field) {
	fractions := valueOf[[]float64](c, f)
	if int64(len(fractions)) > f.Most {
		c.add(f.Name, f.File()+"_many", fractions, fmt.Sprintf("must be at most %d fractions", f.Most))
	}
	for i, fraction := range fractions {
		switch {
		case !(0 < fraction && fraction <= 1): // also NaN
			c.add(f.Name, f.File()+"_range", fractions, "must be fractions above 0 and up to 1, such as 0.8 for 80 %")
			return
		case i > 0 && fraction <= fractions[i-1]:
			c.add(f.Name, f.File()+"_order", fractions, "must be in ascending order")
			return
		}
	}
}

// checkLimits checks the further limits. Each must have a counter of its own.
func (c *ruleCheck) checkLimits(f *rulefield.Field) {
	own := Limit{} // which has no limit's counter
	if c.sound {
		own = c.limit()
	}
	for _, wrong := range checkAlso(own, valueOf[[]Limit](c, f)) {
		wrong.Rule = c.Name
		c.found = append(c.found, wrong)
	}
}

func (c *ruleCheck) checkMode(f *rulefield.Field) {
	if mode := valueOf[Mode](c, f); !mode.known() {
		c.add(f.Name, "mode", mode, "must be Enforce, Soft or DryRun")
	}
}

func (c *ruleCheck) checkPatterns(f *rulefield.Field) {
	c.checkEach(f, "path_pattern", pathmatch.CheckPattern)
}

func (c *ruleCheck) checkMethods(f *rulefield.Field) { c.checkEach(f, "method", pathmatch.CheckMethod) }

func (c *ruleCheck) checkEach(f *rulefield.Field, code string, check func(string) string) {
	for _, text := range valueOf[[]string](c, f) {
		if why := check(text); why != "" {
			c.add(f.Name, code, text, why)
		}
	}
}

// checkStorePolicy checks OnStoreError, also for each limit that it may count locally. It leaves out
// limits that are wrong themselves, which is reported elsewhere.
func (c *ruleCheck) checkStorePolicy(*rulefield.Field) {
	if why := c.OnStoreError.inside().Check(); why != "" {
		c.add("OnStoreError", "store_policy_share", c.OnStoreError, why)
		return
	}
	var limits []Limit
	if c.sound {
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
		c.add("Note", "note_without_log", "a function", "is kept by "+terms.Kinds(keepsNotes)+" only, such as "+terms.Example(keepsNotes))
	}
}

// checkLease checks the Lease against the rule's own limit.
func (c *ruleCheck) checkLease() {
	switch own := c.limit().normal(); {
	case c.Lease <= 0:
	case c.Lease > own.Max:
		c.add("Lease", "lease_range", c.Lease, "must be at most the number of calls in the limit")
	case !leases(own.Algorithm.properties()):
		c.add("Lease", "lease_algorithm", c.Lease, "needs "+terms.Kinds(leases))
	}
}

// checkEstimate checks what the handler of a call cannot settle.
func (c *ruleCheck) checkEstimate() {
	if c.Estimate == nil {
		return
	}
	if wrong := c.Bill.filled().wrong(c.Name); wrong != nil {
		wrong.Field, wrong.Code = "Bill."+wrong.Field, "bill_terms"
		c.found = append(c.found, wrong)
	}
	if field, limit := c.firstLimit(cannotBeSettled); field != "" {
		c.add(field, codeNotSettleable, limit, notSettleable)
	} else if own := c.limit(); own.Algorithm.properties().Slots {
		c.add("Limit", codeNotSettleable, own, notSettleable)
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

// checkPlans checks the limits of plans.
func (c *ruleCheck) checkPlans(*rulefield.Field) {
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
