package operate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A context that has ended is the caller's error, on both engines.
func TestExplainWhenTheContextEnds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		attach(t, limiter, core.Rule{Name: "api", Limit: core.PerHour(5)})
		ctx, cancel := context.WithCancel(background)
		cancel()
		x, err := operate.New(limiter).Explain(ctx, operate.Call{Method: "GET", Path: "/", RemoteAddr: from1})
		if r := ruleOf(t, x, "api"); !errors.Is(err, context.Canceled) || !r.Applies || r.Subject != "ip:192.0.2.1" || r.Reason != "" || x.Reason != "" {
			t.Errorf("%v, %v", err, x)
		}
	})
}

// A key that holds something else is an error of the rules that have it, and of no others.
func TestExplainForeignValues(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	limit := core.PerHour(5)
	attach(t, limiter,
		core.Rule{Name: "counter", Limit: limit}, core.Rule{Name: "closed", Limit: limit, OnStoreError: core.FailClosed}, core.Rule{Name: "good", Limit: limit},
	)
	const head = "accesslimit:{ip:192.0.2.1}:"
	for _, err := range []error{
		client.HSet(background, head+"counter:sw2:3600000000", "a", "b").Err(),
		client.HSet(background, head+"closed:sw2:3600000000", "a", "b").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	x := explain(t, limiter, operate.Call{Method: "GET", Path: "/", RemoteAddr: from1})
	for name, want := range map[string]struct {
		reason core.Reason
		text   string
	}{
		"counter": {core.StoreFailOpen, "choose a Prefix"}, "closed": {core.StoreFailClosed, "choose a Prefix"}, "good": {core.Allowed, ""},
	} {
		r := ruleOf(t, x, name)
		text := strings.Join(r.Errors, ", ")
		if r.Reason != want.reason || !strings.Contains(text, want.text) || (text == "") != (want.text == "") || name == "good" && limitsText(r) != "5/h rule 0+5" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if x.Reason != core.StoreFailClosed || x.Rule != "closed" {
		t.Errorf("%v", x)
	}
}

// Bans and overrides that a process has read are explained while Redis hangs.
func TestExplainMarksWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	for _, name := range []string{"banned", "blocked", "lifted"} {
		attach(t, limiter, core.Rule{Name: name, Limit: core.PerHour(5)})
	}
	ban(t, limiter, "banned", "ip:192.0.2.0/24", time.Hour)
	setOverride(t, limiter, "blocked", me, operate.Override{Blocked: true})
	setOverride(t, limiter, "lifted", me, operate.Override{Unlimited: true})
	inspect(t, limiter, me)
	server.Stop()
	defer server.Continue()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(background, time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	x, _ := operate.New(limiter).Explain(soon(), operate.Call{Method: "GET", Path: "/", RemoteAddr: from1})
	of, _ := operate.New(limiter).Inspect(soon(), me)
	for name, want := range map[string]core.Reason{"banned": core.Banned, "blocked": core.Blocked, "lifted": core.Allowed} {
		if got, alone := ruleOf(t, x, name), ruleOf(t, of, name); got.Reason != want || alone.Reason != want || (name == "banned") != (got.BannedAs == "ip:192.0.2.0/24") {
			t.Errorf("%s: %+v, %+v", name, got, alone)
		}
	}
	if x.Reason != core.Banned && x.Reason != core.Blocked {
		t.Errorf("%v", x)
	}
}

// An explanation asks the store, and neither repeats an earlier refusal nor takes a leased permit.
func TestExplainAsksTheStore(t *testing.T) {
	server := redistest.Start(t)
	limiters := make([]*core.Limiter, 2)
	for i := range limiters {
		limiters[i] = newLimiter(t, core.Options{Redis: server.Client(t, func(o *redis.Options) { o.PoolSize = 5 }), Timeout: patient})
	}
	rules := []core.Rule{{Name: "api", Limit: core.PerHour(2)}, {Name: "leased", Limit: core.PerDay(50), Lease: 50}}
	guards := []*core.Guard{attach(t, limiters[0], rules[0]), attach(t, limiters[0], rules[1]), attach(t, limiters[1], rules[0])}
	call := operate.Call{Method: "GET", Path: "/", RemoteAddr: from1}
	for range 5 { // the last ones are refused by what the process remembers
		guards[0].Check(newView("GET", "/"))
	}
	for range 20 {
		guards[1].Check(newView("GET", "/"))
	}
	before := explain(t, limiters[0], call)
	if _, err := guards[2].Reset(background, "ip:192.0.2.1"); err != nil { // in another process
		t.Fatal(err)
	}
	after := explain(t, limiters[0], call)
	if before.Reason != core.LimitExceeded || after.Reason != core.Allowed || ruleOf(t, after, "api").Limits[0].Used != 0 {
		t.Errorf("before: %v\nafter: %v", before, after)
	}
	if a, b := ruleOf(t, before, "leased").Limits[0].Used, ruleOf(t, after, "leased").Limits[0].Used; a < 20 || a != b {
		t.Errorf("leased: %d used, then %d", a, b)
	}
}

// Explanations, calls and new rules do not disturb each other.
func TestExplainWhileRulesChange(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		set, err := limiter.RuleSet(core.Rule{Name: "api", Limit: core.PerHour(1)})
		if err != nil {
			t.Fatal(err)
		}
		guard := set.MustGuard("api")
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for i := range 50 {
					switch worker {
					case 0:
						if err := set.Replace(fmt.Sprint(i+1), core.Rule{Name: "api", Limit: core.PerHour(i + 1)}); err != nil {
							t.Error(err)
						}
					case 1:
						guard.Check(newView("GET", fmt.Sprint("/", i)))
					case 2:
						x := explain(t, limiter, operate.Call{Method: "GET", Path: "/1"})
						r := x.Rules[0]
						if want := fmt.Sprint(r.Limits[0].Limit.Max); r.Version != want && r.Version != "" {
							t.Errorf("version %s has a limit of %s", r.Version, want)
						}
					case 3:
						inspect(t, limiter, "ip:192.0.2.1")
					}
				}
			})
		}
		all.Wait()
	})
}
