package core_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Each version of a set that guards follow is in the audit, once for all processes. A set without
// guards decides nothing, and leaves no entry.
func TestVersionsOfASetAreAudited(t *testing.T) {
	client := redistest.Start(t).Client(t)
	rule := core.Rule{Name: "api", Limit: core.PerHour(5)}
	for range 2 {
		limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
		var sets [2]*core.RuleSet
		for i := range sets {
			var err error
			if sets[i], err = limiter.RuleSet(); err != nil {
				t.Fatal(err)
			}
			if err := sets[i].Replace([]string{"1", "compared with it"}[i], rule); err != nil {
				t.Fatal(err)
			}
		}
		guards := []*core.Guard{sets[0].MustGuard("api"), sets[0].MustGuard("api", "api")}
		for _, version := range []string{"2", "2", "3"} {
			if err := sets[0].Replace(version, rule); err != nil {
				t.Fatal(err)
			}
		}
		core.AwaitAudit(sets[0])
		runtime.KeepAlive(guards)
	}
	want := []operate.AuditEntry{{Act: "rules", After: "1"}, {Act: "rules", Before: "1", After: "2"}, {Act: "rules", Before: "2", After: "3"}}
	got, err := operate.New(newLimiter(t, core.Options{Redis: client, Timeout: patient})).Audit(background, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(got)
	for i := range got {
		got[i].ID, got[i].Time = "", time.Time{}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit is %+v, want %+v", got, want)
	}
}
