package driver

import (
	"context"
	"fmt"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
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

// awaitDryRuns does nothing: rules in DryRun were decided within the call.
func awaitDryRuns(*core.Limiter) {}

// obeyMarks lets operators ban and override the rule's subjects.
func obeyMarks(rule *core.Rule) {
	rule.Overrides = canObey(rule)
	if rule.Ban == (core.Ban{}) && rule.Overrides {
		rule.Ban.ByHand = true
	}
}

// readMarks does nothing: each call asks for marks.
func readMarks(*operate.Operator) {}

// override makes an override of n calls in the window of the limit.
func override(o *operate.Override, _ core.Limit, n int) { o.Max = n }

func showMax(o operate.Override) string { return fmt.Sprint("max ", o.Max) }

// addPlans gives the rule plans, each of one limit.
func addPlans(rule *core.Rule, plans map[string]core.Limit, plan func(core.Request) (string, error)) {
	rule.Plans, rule.Plan = plans, plan
}

// limitFor lets the rule compute its limits.
func limitFor(rule *core.Rule, f func(core.Request) (core.Limit, error)) { rule.LimitFor = f }
