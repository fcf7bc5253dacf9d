package rulenames

import (
	"fmt"
	"slices"
	"strings"
)

// Conflict is a claim to a name that already stands for something else.
type Conflict[L Limit] struct{ Taken, Own Claim[L] }

// Why returns what the name stands for already. here is where the rule is being attached, or "" if the
// reader knows that.
func (c *Conflict[L]) Why(here string) string {
	taken, own, why := limitsText(c.Taken.Limits), limitsText(c.Own.Limits), "one name, one limit"
	switch {
	case c.Taken.Soft != c.Own.Soft:
		taken, own = softText(c.Taken.Soft), softText(c.Own.Soft)
		why = "a soft rule refuses nobody, so it cannot share counters with a rule that does"
	case slices.Equal(c.Taken.Limits, c.Own.Limits):
		taken, own = leasesText(c.Taken.Leases), leasesText(c.Own.Leases)
		why = "leased permits would be used while the counter is in debt"
	}
	return fmt.Sprintf("stands for %s on this Limiter already%s, and here%s for %s: %s", taken, At(c.Taken.Place), At(here), own, why)
}

// At returns a place in brackets with a space before it, or "" for none.
func At(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

func softText(soft bool) string {
	if soft {
		return "a soft rule"
	}
	return "a rule that refuses calls"
}

func leasesText(leases bool) string {
	if leases {
		return "a rule with a lease"
	}
	return "a rule whose cost is known afterwards"
}

func limitsText[L Limit](limits []L) string {
	texts := make([]string, len(limits))
	for i, limit := range limits {
		texts[i] = limit.String()
	}
	return strings.Join(texts, " and ")
}
