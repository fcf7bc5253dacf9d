package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// An override holds in all versions of a set, whatever limits its rule has.
func TestOverridesOutlastReplacements(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	set := newRuleSet(t, limiter, named("api", core.PerHour(1)))
	guard := set.MustGuard("api")
	defer runtime.KeepAlive(guard)
	setOverride(t, limiter, "api", me, operate.Override{Limits: []core.Limit{core.PerHour(3)}})
	for _, limit := range []core.Limit{core.PerHour(1), core.PerDay(1), core.PerHour(4).Bucket(1)} {
		mustReplace(t, set, named("api", limit))
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	wantStatus(t, guard, newView("GET", "/"), 429)
}

// 150 versions with 750 names, each attached for a while, leave nothing behind.
func TestManyReloads(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	set := newRuleSet(t, limiter, named("api", core.PerHour(1)), named("tried", core.PerHour(1)))
	api := set.MustGuard("api", "tried")
	goroutines, heap, version := 0, uint64(0), 0
	limitFor := func(core.Request) (core.Limit, error) { return core.PerSecond(1000 + version), nil }
	replace := func(more ...core.Rule) {
		version++
		dry := change(named("tried", core.Per(5, time.Duration(version)*time.Second)), func(r *core.Rule) { r.Mode = core.DryRun })
		if err := set.Replace(fmt.Sprint(version), append(more, named("api", core.PerHour(version)), dry)...); err != nil {
			t.Fatal(err)
		}
		api.Check(newView("GET", "/"))
	}
	for block := range 15 {
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
		if runtime.KeepAlive(guards); block == 5 {
			goroutines, heap = runtime.NumGoroutine(), heapInUse()
		}
	}
	replace()
	stats := limiter.Stats()
	if slices.ContainsFunc(stats.Decisions, func(d core.DecisionCount) bool { return d.Rule != "api" && d.Rule != "tried" }) {
		t.Errorf("the Stats have %+v", stats.Decisions)
	}
	if sets := stats.RuleSets; len(sets) != 1 || sets[0].Version != "151" || !slices.Equal(sets[0].Names, []string{"api", "tried"}) {
		t.Errorf("the Stats have %+v", sets)
	}
	if limits := core.KnownLimits(limiter); limits > 10 {
		t.Errorf("%d limits are known", limits)
	}
	eventually(t, fmt.Sprint("at most ", goroutines, " goroutines"), func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, fmt.Sprint("at most 500 kB more in use than ", heap), func() bool { return heapInUse() <= heap+500_000 })
}

// heapInUse returns the memory that is in use.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // sync.Pool gives up its objects in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

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

// caller is the handler of a log that calls the set and its Limiter with each line.
type caller struct {
	slog.Handler
	limiter *core.Limiter
	set     *core.RuleSet
	lines   int
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return c.set != nil }

func (c *caller) Handle(context.Context, slog.Record) error {
	c.set.MustGuard("api")
	c.limiter.Stats()
	c.set.ReportError(nil)
	c.lines++
	return nil
}

// The handler of a log may call the set, also about an audit that fails after the Limiter was closed:
// it is written before Replace returns then.
func TestTheLogOfAnAuditMayCallTheSet(t *testing.T) {
	c := new(caller)
	options := deadRedis(t)
	options.Logger = slog.New(c)
	c.limiter = newLimiter(t, options)
	set := newRuleSet(t, c.limiter, named("api", core.PerHour(1)))
	guard := set.MustGuard("api")
	c.limiter.Close()
	c.set = set
	if err := set.Replace("2", named("api", core.PerHour(2))); err != nil {
		t.Error(err)
	}
	if c.lines < 2 {
		t.Errorf("%d lines", c.lines)
	}
	runtime.KeepAlive(guard)
}

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
					v := newView("GET", "/").From(fmt.Sprintf("192.0.2.%d", n))
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

// Sets and guards may be made, replaced and looked at from several goroutines.
func TestRuleSetsAreSafeForConcurrentUse(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	set := newRuleSet(t, limiter, named("api", core.PerHour(1)), named("n0", core.PerHour(1)), named("n1", core.PerHour(1)))
	var goroutines sync.WaitGroup
	for g := range 4 {
		goroutines.Go(func() {
			for i := range 100 {
				guard := set.MustGuard("api", fmt.Sprint("n", i%2))
				guard.Check(newView("GET", "/"))
				limit := core.PerHour(1 + i)
				if err := set.Replace(fmt.Sprint(g, i), named("api", limit), named("n0", limit), named("n1", limit)); err != nil {
					t.Error(err)
				}
				if i%25 == 0 && set.Replace("bad") == nil {
					t.Error("rules without an attached name are accepted")
				}
				newGuard(t, limiter, named(fmt.Sprint("static", i), core.PerHour(1))).Check(newView("GET", "/"))
				_, _ = limiter.Stats(), guard.Rules()
			}
		})
	}
	goroutines.Wait()
}
