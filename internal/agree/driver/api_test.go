package driver

import (
	"context"
	"runtime"

	"github.com/accesslimit/accesslimit/core"
)

// This file has what two versions of the library spell differently. If one of them changes, the file
// for the older version is testdata/old/api_test.go.

// estimate makes the rule one whose costs are settled.
func estimate(rule *core.Rule, cost func(core.Request) int, terms core.BillTerms) {
	rule.Cost = terms.Estimate(cost)
}

// settle settles a rule's estimate.
func settle(ctx context.Context, rule string, used int) error { return core.Settle(ctx, rule, used) }

// withEstimates returns a context in which a rule of a check costs an estimate.
func withEstimates(ctx context.Context, check *core.Check, rule string, n int) (context.Context, error) {
	return check.WithEstimates(ctx, map[string]int{rule: n})
}

// awaitDryRuns waits until what rules in DryRun do has ended, so that a history can be repeated.
func awaitDryRuns(limiter *core.Limiter) {
	for limiter.Stats().DryRunsNow > 0 {
		runtime.Gosched()
	}
}

// obeyOverrides lets operators override the rule.
func obeyOverrides(rule *core.Rule) { rule.Overrides = true }

// obeyBans lets operators ban subjects from the rule.
func obeyBans(rule *core.Rule) {
	if rule.Ban == (core.Ban{}) {
		rule.Ban.ByHand = true
	}
}

// addPlans gives the rule plans, each of one limit.
func addPlans(rule *core.Rule, plans map[string]core.Limit, plan func(core.Request) (string, error)) {
	rule.Plans, rule.Plan = plans, plan
}

// limitFor lets the rule compute its limits.
func limitFor(rule *core.Rule, f func(core.Request) (core.Limit, error)) { rule.LimitFor = f }
