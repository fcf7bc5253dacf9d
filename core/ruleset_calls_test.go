package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// versionOfRules returns three rules whose limits, plans included, all end with one digit.
func versionOfRules(digit int) []core.Rule {
	plan := named("plan", core.PerHour(3_000_000+digit))
	plan.Plan = func(core.Request) (string, error) { return "pro", nil }
	plan.Plans = map[string]core.Limit{"pro": core.PerHour(4_000_000 + digit)}
	also := named("also", core.PerHour(1_000_000+digit))
	also.Also = []core.Limit{core.PerDay(2_000_000 + digit)}
	return []core.Rule{also, plan, named("bucket", core.PerMinute(5_000_000+digit).Bucket(10+digit))}
}

// A call is decided by the rules of one version, however often they are replaced meanwhile.
func TestACallUsesOneVersion(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var calls, seen [2]atomic.Int64
		options.OnDecision = func(_ context.Context, e core.Event) {
			digit := e.Decision.Limit.Max % 10
			for _, d := range e.Decision.All {
				if d.Limit.Max%10 != digit || d.Limit.Algorithm == core.TokenBucket && d.Limit.Burst%10 != digit {
					t.Errorf("%s has %v in a call of version %d", d.Rule, d.Limit, digit)
				}
			}
			if len(e.Decision.All) != 4 {
				t.Errorf("%d limits decided", len(e.Decision.All))
			}
			seen[digit].Add(1)
		}
		limiter := newLimiter(t, options)
		set := newRuleSet(t, limiter, versionOfRules(0)...)
		guard, check := set.MustGuard("also", "plan", "bucket"), set.MustCheck("bucket", "also", "plan")
		stop := make(chan struct{})
		var callers sync.WaitGroup
		for n := range 4 {
			callers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					v := newView("GET", "/").from(fmt.Sprintf("192.0.2.%d", n))
					answer := guard.Check(v)
					if n%2 == 1 {
						answer = check.Allow(v, "account:7")
					}
					answer.Run(func() int { return 200 })
					calls[n%2].Add(1)
				}
			})
		}
		for version := 1; version <= 300 || seen[0].Load() < 20 || seen[1].Load() < 20 || calls[0].Load() < 20 || calls[1].Load() < 20; version++ {
			if err := set.Replace(fmt.Sprint(version), versionOfRules(version%2)...); err != nil {
				t.Error(err)
				break
			}
		}
		close(stop)
		callers.Wait()
	})
}

func mustReplace(t *testing.T, set *core.RuleSet, rules ...core.Rule) {
	t.Helper()
	if err := set.Replace("next", rules...); err != nil {
		t.Fatal(err)
	}
}

// Permits that were leased under the old limit are given back, and count until then. So what passes
// under both limits together is never more than the new one allows, and not less in the end.
func TestLeasesAcrossVersions(t *testing.T) {
	t.Parallel() // it waits for real time
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	leased := func(n int) core.Rule {
		rule := named("n", core.PerHour(n))
		rule.Lease = 100
		return rule
	}
	set := newRuleSet(t, limiter, leased(100_000))
	guard, passed := set.MustGuard("n"), 0
	call := func() {
		if guard.Check(newView("GET", "/")).Refusal == nil {
			passed++
		}
	}
	for range 500 {
		call()
	}
	const limit = 800
	mustReplace(t, set, leased(limit))
	eventually(t, "all permits of the new limit are used", func() bool {
		for range 50 {
			call()
		}
		return passed >= limit
	})
	for range 100 {
		call()
	}
	if passed != limit {
		t.Errorf("%d calls passed, want %d", passed, limit)
	}
	if trips := limiter.Stats().Trips; trips > limit {
		t.Errorf("%d trips: nothing was leased", trips)
	}
}
