package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/rulenames"
)

// claimsOf returns what must stand for the same limits everywhere: the names of rules, or the counters
// of rules that are named after their patterns.
func claimsOf(rules []*boundRule) (claims []rulenames.Claim[Limit]) {
	for _, rule := range rules {
		if rule.fixed != nil {
			claims = append(claims, rule.claim())
		}
	}
	return claims
}

// claim returns what the rule's name stands for. A name that is made of patterns may stand for several
// spans. A rule in DryRun has counters of its own, and does not claim its Name.
func (b *boundRule) claim() rulenames.Claim[Limit] {
	c := rulenames.Claim[Limit]{
		Name: b.Name, Rule: b.fixed.name, Overrides: b.Overrides, Mode: engine.Mode(b.Mode), Bans: b.ban != nil, BanAfter: b.Ban.After,
	}
	if b.Name == "" || b.Mode == DryRun {
		c.Name = b.fixed.limits[0].counted.KeyTail
	}
	for _, limit := range b.limits {
		c.Limits = append(c.Limits, limit.normal())
	}
	return c
}

// nameError returns a conflict as an error. here is where the rule is being attached, or "" if the
// reader of the error knows that.
func nameError(c *rulenames.Conflict[Limit], here string) *RuleError {
	taken, own, why := limitsText(c.Taken.Limits), limitsText(c.Own.Limits), "one name, one limit"
	switch {
	case c.Taken.Mode != c.Own.Mode:
		taken, own = softText(c.Taken.Mode), softText(c.Own.Mode)
		why = "a soft rule refuses nobody, so it cannot share counters with a rule that does"
	case slices.Equal(c.Taken.Limits, c.Own.Limits):
		taken, own = overridesText(c.Taken.Overrides), overridesText(c.Own.Overrides)
		why = "rules of one name share their overrides"
	}
	return &RuleError{
		Rule: c.Own.Rule, Field: "Name", Code: "name_conflict", Value: c.Own.Rule,
		Why: fmt.Sprintf("stands for %s on this Limiter already%s, and here%s for %s: %s",
			taken, inBrackets(c.Taken.Place), inBrackets(here), own, why),
	}
}

func softText(mode engine.Mode) string {
	if mode == engine.Soft {
		return "a soft rule"
	}
	return "a rule that refuses calls"
}

func overridesText(overrides bool) string {
	if overrides {
		return "a rule with overrides"
	}
	return "a rule without overrides"
}

func inBrackets(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

func limitsText(limits []Limit) string {
	texts := make([]string, len(limits))
	for i, limit := range limits {
		texts[i] = limit.String()
	}
	return strings.Join(texts, " and ")
}
