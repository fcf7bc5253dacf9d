package console_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/internal/limitertest"
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

// The page of the rules has what is in force, where it stands, and what dry runs would have done.
func TestRules(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		shared := core.Rule{Name: "api", Limit: core.PerHour(100), Except: []string{"/healthz"}, Ban: core.Ban{After: 3, For: time.Minute}}
		trial := attach(t, limiter, core.Rule{Name: "trial", Limit: core.PerHour(1), Methods: []string{"GET"}, Mode: core.DryRun},
			core.Rule{Name: "beside", Limit: core.PerHour(4)})
		for range 3 {
			attach(t, limiter, shared)
		}
		set, err := limiter.RuleSet()
		if err != nil {
			t.Fatal(err)
		}
		plans := map[string]core.Limit{"pro": core.PerHour(9)}
		withPlans := core.Rule{Name: "set", Seconds: 60, Plans: plans, Plan: func(core.Request) (string, error) { return "", nil }, OnStoreError: core.FailClosed}
		if err := set.Replace("v7", withPlans); err != nil {
			t.Fatal(err)
		}
		following := set.MustGuard("set")
		defer runtime.KeepAlive(following)
		if err := set.Replace("v8"); err == nil {
			t.Fatal("rules that lack an attached name are in force")
		}
		for range 5 {
			trial.Check(callOf("GET", "/"))
			limitertest.AwaitDryRuns(t, limiter)
		}
		attach(t, limiter,
			core.Rule{Name: "all", Limit: core.PerHour(3), Key: core.Global},
			core.Rule{Name: "host", Limit: core.PerHour(3), Key: core.ByHost},
			core.Rule{Name: "own", Limit: core.PerHour(4), Key: func(core.Request) (string, error) { return "", nil }},
			core.Rule{Name: "skip", Limit: core.PerHour(5), Skip: func(core.Request) bool { return false }})
		viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
		wantParts(t, viewer.wantPage("rules"), "all 3/h all calls 0 0 counts all callers together", "host 3/h all calls 0 0 counts by host",
			"own 4/h all calls 0 0 counts by a function of the service", "skip 5/h all calls 0 0 skips some calls")
		body := viewer.wantPage("rules")
		wantParts(t, body,
			"trial 1/h GET 5 0 would have refused 4 of 5, 1 of them refused already dry run", "api 100/h except /healthz 0 0 bans after 3 windows, for 1m",
			"set 5/m plan pro: 9/h", "version v7", "Version v7, in force for", "A newer version could not be used:", "is missing in the new rules")
		if n := strings.Count(body, `<th scope="row">api</th>`); n != 1 {
			t.Errorf("a rule that three guards have is shown %d times", n)
		}
		wantParts(t, viewer.wantPage(""), "Version v7", "trial")
	})
}
