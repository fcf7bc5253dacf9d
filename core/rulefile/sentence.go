package rulefile

import (
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/terms"
)

// sentences say in the words of a file what core says in those of Go, by the codes of the mistakes.
var sentences = map[string]string{
	"ban_after":            "must be 1 to 1000 windows; or set by_hand alone",
	"ban_max":              `must be "for" to 366 days, or unset`,
	"lease_algorithm":      "needs " + terms.Phrases(leases),
	"lease_and_overrides":  "cannot be combined with overrides: calls with leased permits do not ask Redis, so they would miss an override",
	"lease_and_warn":       "cannot be combined with warn: calls with leased permits do not ask Redis, so they would pass a threshold unseen",
	"lease_range":          "must be 1 to the number of calls in the limit",
	"limit_and_max_count":  "belongs to seconds: with limit, set the number in it",
	"limit_and_seconds":    "takes the place of seconds and max_count: set one or the other",
	"no_limit":             "a rule needs a limit: set seconds, or limit",
	"no_plan":              "must be set with plans, to say who has which plan",
	"no_plans":             "must be set with plan, to say what each plan allows",
	"not_overridable":      "must have the span and the algorithm of the rule's own limit, because overrides are made for those",
	"note_without_log":     "is kept by " + terms.Phrases(keepsNotes) + " only: set limit to one such as " + terms.Example(keepsNotes),
	"plans_and_limit_for":  "takes the place of plans and plan: set one or the other",
	"soft_and_ban":         "cannot be combined with ban, because the rule refuses nobody",
	"soft_and_fail_closed": "cannot be combined with on_store_error: fail_closed, because the rule refuses nobody",
	"soft_and_lease":       "cannot be combined with lease: permits are leased before it is known whether another rule refuses the call",
}

// sentence returns what a message says of a mistake that core found.
func sentence(wrong *core.RuleError) string {
	if text, ok := sentences[wrong.Code]; ok {
		return text
	}
	return wrong.Why
}

func leases(p *algorithm.Properties) bool { return p.Leases }

func keepsNotes(p *algorithm.Properties) bool { return p.Notes }
