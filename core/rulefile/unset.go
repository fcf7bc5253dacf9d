package rulefile

import (
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// unset takes a field that core refused out of the rule, so that the rest of it can be checked. It
// reports false if the rest cannot be checked without the field.
func (r *ruleReader) unset(name string, wrong *core.RuleError) bool {
	field, _, _ := strings.Cut(name, ".")
	rule := &r.rule
	switch field {
	case "also":
		rule.Also = slices.DeleteFunc(slices.Clone(rule.Also), func(l core.Limit) bool { return any(l) == wrong.Value })
	case "need_login":
		rule.NeedLogin = false
	case "plans", "plan", "limit_for":
		rule.Plans, rule.Plan, rule.LimitFor = nil, nil, nil
	case "note":
		rule.Note = nil
	case "ban":
		rule.Ban = core.Ban{}
	case "lease":
		rule.Lease = 0
	case "overrides":
		rule.Overrides = false
	case "warn":
		rule.Warn = nil
	case "on_store_error":
		rule.OnStoreError = core.StorePolicy{}
	case "limit", "seconds", "max_count":
		// Whatever holds for the lease, the policy and the plans depends on it.
		rule.Limit, rule.Seconds, rule.MaxCount = core.PerDay(1), 0, 0
		rule.Lease, rule.OnStoreError, rule.Note, rule.Also, rule.Overrides = 0, core.StorePolicy{}, nil, nil, false
	default:
		return false
	}
	return true
}
