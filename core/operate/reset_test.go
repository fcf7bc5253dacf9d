package operate_test

import (
	"runtime"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Reset by name forgets all that attached rules of this name counted for the subject, and nothing
// else.
func TestResetByName(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		rule := core.Rule{Name: "api", Limit: core.PerHour(1), Also: []core.Limit{core.PerMinute(1)}, Key: bySubject}
		dry, other := rule, rule
		dry.Mode, other.Name = core.DryRun, "other"
		guard, others := newGuard(t, limiter, rule), newGuard(t, limiter, other)
		again, trial := newGuard(t, limiter, rule), newGuard(t, limiter, dry)
		for _, subject := range []string{"user:alice", "user:bob"} {
			wantStatus(t, guard, subject, 200)
			wantStatus(t, others, subject, 200)
			wantStatus(t, trial, subject, 200)
		}
		awaitDryRuns(t, limiter)
		ctx := operate.WithActor(background, "ops", "ticket 7")
		if changed, err := operate.New(limiter).Reset(ctx, "api", "user:alice"); err != nil || !changed {
			t.Fatalf("Reset: %v, %v", changed, err)
		}
		if changed, err := operate.New(limiter).Reset(ctx, "api", "user:alice"); err != nil || changed {
			t.Errorf("Reset again: %v, %v", changed, err)
		}
		wantStatus(t, guard, "user:alice", 200)
		wantStatus(t, again, "user:bob", 429)
		wantStatus(t, others, "user:alice", 429)
		if got := auditOf(t, limiter); len(got) != 1 || got[0] != (operate.AuditEntry{Act: "reset", Rule: "api", Subject: "user:alice", Author: "ops", Note: "ticket 7"}) {
			t.Errorf("the audit is %+v", got)
		}
		runtime.KeepAlive(again)
	})
}
