package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// The pages say of each rule, and of all together, what they would do if Redis failed now. Without
// Redis there is nothing to say.
func TestRulesIfRedisFailed(t *testing.T) {
	withPolicies := func(options core.Options) *browser {
		limiter := newLimiter(t, options)
		for name, policy := range map[string]core.StorePolicy{"open": core.FailOpen, "closed": core.FailClosed, "local": core.CountLocally(0.25)} {
			attach(t, limiter, core.Rule{Name: name, Limit: core.PerHour(1), OnStoreError: policy})
		}
		attach(t, limiter, core.Rule{Name: "unset", Limit: core.PerHour(1)}, core.Rule{Name: "trial", Limit: core.PerHour(1), Mode: core.DryRun},
			core.Rule{Name: "soft", Limit: core.PerHour(1), Mode: core.Soft})
		return as(t, "viewer", newPage(t, limiter, console.Options{}))
	}
	viewer := withPolicies(core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	wantParts(t, viewer.wantPage("rules"), "open 1/h all calls 0 0 limits nobody", "closed 1/h all calls 0 0 refuses all calls",
		"local 1/h all calls 0 0 counts in each process (count_locally 0.25)", "unset 1/h all calls 0 0 limits nobody",
		"trial 1/h all calls 0 0 would have refused 0 of 0 dry run limits nobody", "soft 1/h all calls 0 0 soft limits nobody")
	var now struct {
		Health struct {
			Outage map[string]struct {
				Count int
				Rules []string
			} `json:"if_redis_failed"`
		}
	}
	viewer.json("api/now", &now)
	outage, _ := json.Marshal(now.Health.Outage)
	const want = `{"count_locally":{"Count":1,"Rules":["local"]},"limit_nobody":{"Count":2,"Rules":["open","unset"]},"refuse_all":{"Count":1,"Rules":["closed"]}}`
	if string(outage) != want {
		t.Errorf("the API says %s, want %s", outage, want)
	}
	const sum = "Rules that would limit nobody if Redis failed now, apart from bans and blocks: 2 (open, unset). " +
		"Rules that would refuse all calls: 1 (closed). Rules that would count in each process: 1 (local)."
	for _, path := range []string{"", "rules"} {
		wantParts(t, viewer.wantPage(path), sum)
	}
	viewer = withPolicies(core.Options{})
	for _, path := range []string{"", "rules"} {
		if body := viewer.wantPage(path); strings.Contains(strings.ToLower(body), "if redis failed") {
			t.Errorf("without Redis, %q says %s", path, lines(body))
		}
	}
}
