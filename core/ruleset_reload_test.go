package core_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Overrides hold as the rules are now: for a rule that has Overrides, and the window that they were
// made for.
func TestOverridesFollowTheSet(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		with := func(limit core.Limit) core.Rule {
			rule := named("api", limit)
			rule.Overrides = true
			return rule
		}
		set := newRuleSet(t, limiter, named("api", core.PerHour(1)))
		guard := set.MustGuard("api")
		defer runtime.KeepAlive(guard)
		if _, err := operate.New(limiter).Overrides("api"); err == nil {
			t.Error("overrides of a rule that has none")
		}
		mustReplace(t, set, with(core.PerHour(1)))
		setOverride(t, limiter, "api", me, operate.Override{Max: 3})
		call := func(want ...int) {
			t.Helper()
			for _, status := range want {
				wantStatus(t, guard, newView("GET", "/"), status)
			}
		}
		call(200, 200)
		mustReplace(t, set, with(core.PerHour(2)))
		call(200, 429)
		mustReplace(t, set, with(core.PerDay(1)))
		call(200, 429)
		mustReplace(t, set, named("api", core.PerHour(4)))
		call(200, 429)
		if _, err := operate.New(limiter).Overrides("api"); err == nil {
			t.Error("overrides of a rule that has none any more")
		}
		limiter.MustCounter("api", core.PerDay(5)).WithOverrides() // an override cannot hold for both
		wantPlaces(t, set.Replace("hour", with(core.PerHour(4))), "5/24h on this Limiter already (", "and here (in a RuleSet", "for 4/h")
		mustReplace(t, set, with(core.PerDay(4)))
	})
}

// 500 versions with 2,500 names, each attached for a while, leave nothing behind.
func TestManyReloads(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	static := newGuard(t, limiter, named("static", core.PerHour(1000)))
	set := newRuleSet(t, limiter, named("api", core.PerHour(1)), named("tried", core.PerHour(1)))
	api := set.MustGuard("api", "tried")
	goroutines, heap, version := 0, uint64(0), 0
	limitFor := func(core.Request) (core.Limit, error) { return core.PerSecond(1000 + version), nil }
	replace := func(more ...core.Rule) {
		version++
		tried := named("tried", core.Per(5, time.Duration(version)*time.Second))
		tried.Mode = core.DryRun
		if err := set.Replace(fmt.Sprint(version), append(more, named("api", core.PerHour(version)), tried)...); err != nil {
			t.Fatal(err)
		}
		api.Check(newView("GET", "/"))
		static.Check(newView("GET", "/"))
	}
	for block := range 50 {
		var rules []core.Rule
		var guards []*core.Guard
		for range 10 {
			var names []string
			for range 5 {
				rule := named(fmt.Sprint("new", len(rules), "of", block), core.PerSecond(50))
				rule.LimitFor = limitFor
				rules, names = append(rules, rule), append(names, rule.Name)
			}
			replace(rules...)
			// Two rules of one name share a counter, whose limit is prepared in the call.
			guards = append(guards, set.MustGuard(append(names, names[0])...))
			for _, guard := range guards {
				guard.Check(newView("GET", "/"))
			}
		}
		runtime.KeepAlive(guards)
		if block == 5 {
			goroutines, heap = runtime.NumGoroutine(), heapInUse()
		}
	}
	replace()
	stats := limiter.Stats()
	for _, d := range stats.Decisions {
		if !slices.Contains([]string{"api", "tried", "static"}, d.Rule) {
			t.Errorf("the Stats have %+v", d)
		}
	}
	if sets := stats.RuleSets; len(sets) != 1 || sets[0].Version != "501" || !slices.Equal(sets[0].Names, []string{"api", "tried"}) {
		t.Errorf("the Stats have %+v", sets)
	}
	if limits := core.KnownLimits(limiter); limits > 10 {
		t.Errorf("%d limits are known", limits)
	}
	eventually(t, fmt.Sprint("at most ", goroutines, " goroutines"), func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := heapInUse(); now > heap+2<<20 {
		t.Errorf("%d bytes in use, after %d", now, heap)
	}
}

// heapInUse returns the memory that is in use.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // sync.Pool gives up its objects in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
