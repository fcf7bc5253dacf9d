package driver

import (
	"context"
	"fmt"
	"runtime"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// This file has what two versions of the library spell differently. If one of them changes, the file
// for the older version is testdata/old/api_test.go.

// estimate makes the rule one whose costs are settled.
func estimate(rule *core.Rule, cost func(core.Request) int, terms core.BillTerms) {
	rule.Cost, rule.Estimate, rule.Bill = nil, cost, terms
}

// settle settles a rule's estimate.
func settle(ctx context.Context, rule string, used int) error {
	return core.Settle(ctx, core.Costs{rule: used})
}

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

// obeyMarks does nothing: all rules and handles obey the acts of operators.
func obeyMarks(*core.Rule) {}

// readMarks has a process read the marks that have changed.
func readMarks(o *operate.Operator) { _, _, _ = o.AllBans(context.Background(), "", 1) }

// override makes an override of n calls in the window of the limit.
func override(o *operate.Override, limit core.Limit, n int) {
	limit.Max = n
	o.Limits = []core.Limit{limit}
}

func showMax(o operate.Override) string {
	if len(o.Limits) == 0 {
		return "max 0"
	}
	return fmt.Sprint("max ", o.Limits[0].Max)
}

// addPlans gives the rule plans, each of one limit.
func addPlans(rule *core.Rule, plans map[string]core.Limit, plan func(core.Request) (string, error)) {
	rule.Plans, rule.Plan = plans, plan
}

// limitFor lets the rule compute its limits.
func limitFor(rule *core.Rule, f func(core.Request) (core.Limit, error)) { rule.LimitFor = f }
