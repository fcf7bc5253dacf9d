package core_test

import (
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// isBanned reports whether a rule bans a subject. One of the Guards with the rule must be in use,
// because Inspect does not show those of others.
func isBanned(t *testing.T, limiter *core.Limiter, subject string) bool {
	t.Helper()
	x, err := operate.New(limiter).Inspect(background, subject)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Rules) == 0 {
		t.Fatal("no rule is attached")
	}
	return slices.ContainsFunc(x.Rules, func(r operate.ExplainedRule) bool { return !r.BannedUntil.IsZero() })
}
