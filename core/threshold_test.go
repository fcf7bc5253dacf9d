package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// reports notes what OnThreshold receives.
type reports struct {
	mu    sync.Mutex
	heard []core.Threshold
}

func (r *reports) note(_ context.Context, t core.Threshold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, t)
}

// all returns the reports so far, in order.
func (r *reports) all() []core.Threshold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard)
}

// await returns the reports when there are n.
func (r *reports) await(t testing.TB, n int) []core.Threshold {
	t.Helper()
	if !redistest.WaitUntil(func() bool { return len(r.all()) >= n }, patient) || len(r.all()) != n {
		t.Fatalf("%d reports, want %d: %+v", len(r.all()), n, r.all())
	}
	return r.all()
}

// warning returns options with a Timeout for Close, and what is reported.
func warning(options core.Options) (core.Options, *reports) {
	heard := new(reports)
	options.OnThreshold, options.Timeout = heard.note, patient
	return options, heard
}

// texts returns what the reports say, except their times.
func textsOf(heard []core.Threshold) (texts []string) {
	for _, t := range heard {
		texts = append(texts, fmt.Sprintf("%s %s %v: %v, %d used", t.Rule, t.Key, t.Limit, t.Fraction, t.Used))
	}
	return texts
}

func wantReports(t testing.TB, heard []core.Threshold, want ...string) {
	t.Helper()
	if got := textsOf(heard); !slices.Equal(got, want) {
		t.Errorf("reported is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Each algorithm reports each threshold when a call reaches it, with what is in use then.
func TestThresholds(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		for name, limit := range lasting(10) {
			options, heard := warning(options)
			limiter := newLimiter(t, options)
			guard := newGuard(t, limiter, core.Rule{Name: name, Limit: limit, Warn: []float64{0.01, 0.75, 1}})
			for range 12 {
				guard.Check(newView("GET", "/"))
			}
			limiter.Close()
			begin := name + " " + me + " " + limit.String() + ": "
			wantReports(t, heard.all(), begin+"0.01, 1 used", begin+"0.75, 8 used", begin+"1, 10 used")
			for _, r := range heard.all() {
				if r.ResetAfter <= 0 || time.Since(r.Time).Abs() > time.Minute {
					t.Errorf("%s is full after %v, at %v", name, r.ResetAfter, r.Time)
				}
			}
		}
	})
}

// A threshold is a fraction of Max rounded up, and of the burst of a bucket.
func TestThresholdIsRoundedUp(t *testing.T) {
	for _, test := range []struct {
		limit    core.Limit
		fraction float64
		used     int
	}{
		{core.PerHour(1), 0.1, 1}, {core.PerHour(3), 0.5, 2}, {core.PerHour(30), 0.1, 3}, {core.PerHour(10), 0.8, 8}, {core.PerHour(10), 0.81, 9},
		{core.PerHour(1).Bucket(10), 0.5, 5}, {core.PerHour(100).Bucket(10), 1, 10},
	} {
		options, heard := warning(core.Options{})
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: test.limit, Warn: []float64{test.fraction}})
		for range test.limit.Max + 10 {
			guard.Check(newView("GET", "/"))
		}
		limiter.Close()
		wantReports(t, heard.all(), fmt.Sprintf("n %s %v: %v, %d used", me, test.limit, test.fraction, test.used))
	}
}

// Every limit of a rule is reported by itself: further ones, those of plans and overrides. A call of
// a high cost reaches several thresholds. Rules without Warn report nothing.
func TestThresholdsOfEveryLimit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		rule := core.Rule{
			Name: "n", Limit: core.PerHour(10), Also: []core.Limit{core.PerDay(4)}, Overrides: true, Warn: []float64{0.5, 1},
			Plans: map[string]core.Limit{"pro": core.PerHour(20)}, Plan: planOf("pro"), Cost: cost(4),
		}
		other := core.Rule{Name: "other", Limit: core.PerHour(8), Key: rule.Key}
		guard := newGuard(t, limiter, rule, other)
		overrides, err := operate.New(limiter).Overrides("n")
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantReports(t, heard.await(t, 2), "n "+me+" 4/24h: 0.5, 4 used", "n "+me+" 4/24h: 1, 4 used")
		if _, err := limiter.MustCounter("n", core.PerDay(4)).Reset(background, me); err != nil {
			t.Fatal(err)
		}
		if err := overrides.Set(background, me, operate.Override{Max: 8}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		limiter.Close()
		wantReports(t, heard.all()[2:], "n "+me+" 8/h: 1, 8 used")
	})
}

// Only a charge of the rule reaches a threshold. A refused call does not, nor a call that must log
// in first, one whose permits another limit refuses, use that a handle of the name charges, or a
// call that is counted here because Redis cannot count it.
func TestOnlyChargesReachThresholds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		half := core.Rule{Name: "half", Limit: core.PerHour(2), Warn: []float64{0.5, 1}, Key: key("s")}
		login := core.Rule{Name: "login", Limit: core.PerHour(2), NeedLogin: true}
		full := core.Rule{Name: "full", Limit: core.PerHour(1), Key: key("s")}
		charge(t, limiter, "full", "s", full.Limit, 1)
		for range 3 {
			wantStatus(t, newGuard(t, limiter, half, login), newView("GET", "/"), 401)
			wantStatus(t, newGuard(t, limiter, half, full), newView("GET", "/"), 429)
		}
		charge(t, limiter, "half", "s", half.Limit, 1)
		wantStatus(t, newGuard(t, limiter, half, full), newView("GET", "/"), 429)
		wantStatus(t, newGuard(t, limiter, half), newView("GET", "/"), 200)
		wantStatus(t, newGuard(t, limiter, half), newView("GET", "/"), 429)
		limiter.Close()
		wantReports(t, heard.all(), "half s 2/h: 1, 2 used")
	})
	t.Run("here", func(t *testing.T) {
		client := redistest.Start(t).Client(t)
		options, heard := warning(core.Options{Redis: client})
		limiter := newLimiter(t, options)
		if err := client.RPush(background, core.CounterKey("accesslimit", me, "n", core.PerHour(3)), "in the way").Err(); err != nil {
			t.Fatal(err)
		}
		guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(3), Warn: []float64{0.1}, OnStoreError: core.CountLocally(1)})
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 200, 429)
		limiter.Close()
		wantReports(t, heard.all())
	})
}

// A rule in DryRun reports its own counters, also when it would refuse.
func TestThresholdsOfADryRun(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		rule := core.Rule{Name: "n", Limit: core.PerHour(2), Warn: []float64{1}}
		tried := rule
		tried.Mode, tried.Limit = core.DryRun, core.PerHour(3)
		guard := newGuard(t, limiter, rule, tried)
		alone := newGuard(t, limiter, tried)
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 429)
		wantServed(t, alone, newView("GET", "/"), 200, 200, 200)
		limiter.Close()
		wantReports(t, heard.all(), "n "+me+" 2/h: 1, 2 used", "n "+me+" 3/h: 1, 3 used")
	})
}

// A soft rule reports what it charges. A call that fits into one of its limits and not into another
// is charged to neither.
func TestThresholdsOfASoftRule(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{
			Name: "n", Limit: core.PerHour(4), Also: []core.Limit{core.PerDay(1)}, Mode: core.Soft, Warn: []float64{0.5, 1},
		})
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 200, 200)
		charge(t, limiter, "n", me, core.PerHour(4), 1) // half of it is used, and not by the rule
		wantServed(t, guard, newView("GET", "/"), 200, 200, 200)
		limiter.Close()
		wantReports(t, heard.all(), "n "+me+" 1/24h: 0.5, 1 used", "n "+me+" 1/24h: 1, 1 used")
	})
}

// Three processes under load report each threshold of each subject once.
func TestThresholdsOnceInAFleet(t *testing.T) {
	for name, client := range map[string]func(t *testing.T) redis.UniversalClient{
		"memory":  func(*testing.T) redis.UniversalClient { return nil },
		"redis":   func(t *testing.T) redis.UniversalClient { return redistest.Start(t).Client(t) },
		"cluster": func(t *testing.T) redis.UniversalClient { return redistest.StartCluster(t).Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			const subjects, most = 30, 20
			options, heard := warning(core.Options{Redis: client(t)})
			var fleet []*core.Limiter
			for range 3 {
				if options.Redis != nil || fleet == nil {
					fleet = append(fleet, newLimiter(t, options))
				}
			}
			limits := lasting(most)
			delete(limits, core.Concurrency.String()) // whose slots nobody would give back
			var load sync.WaitGroup
			for _, limiter := range fleet {
				for rule, limit := range limits {
					check := limiter.MustCheck(core.Rule{Name: rule, Limit: limit, Warn: []float64{0.25, 0.8, 1}})
					for range 2 {
						load.Go(func() {
							for i := range subjects * most {
								check.Allow(newView("GET", "/"), fmt.Sprint("s", i%subjects))
							}
						})
					}
				}
			}
			load.Wait()
			for _, limiter := range fleet {
				limiter.Close()
			}
			found := make(map[string]int)
			for _, r := range heard.all() {
				found[fmt.Sprint(r.Rule, r.Key, r.Fraction, r.Used)]++
			}
			if want := subjects * len(limits) * 3; len(found) != want || len(heard.all()) != want {
				t.Errorf("%d reports, %d of them different, want %d", len(heard.all()), len(found), want)
			}
		})
	}
}

// Use that moves up and down is reported once in a window, also if every process sees it.
func TestTeeteringThreshold(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		rules := []core.Rule{
			{Name: "refunded", Limit: core.PerHour(4).Fixed(), Warn: []float64{0.5, 1}, Count: is(200)},
			{Name: "slots", Limit: core.InFlight(4).LostAfter(time.Hour), Warn: []float64{0.5}},
		}
		limiter := newLimiter(t, options)
		for round := range 4 {
			if options.Redis != nil && round > 0 { // a process that has not seen the use before
				limiter = newLimiter(t, options)
			}
			guard := newGuard(t, limiter, rules...)
			for range 3 {
				first, second := wantStatus(t, guard, newView("GET", "/"), 200), wantStatus(t, guard, newView("GET", "/"), 200)
				second.Run(func() int { return 500 })
				first.Run(func() int { return 500 })
			}
			heard.await(t, 2)
			if options.Redis != nil {
				limiter.Close()
			}
		}
		limiter.Close()
		wantReports(t, heard.all(), "refunded "+me+" 4/h fixed: 0.5, 2 used", "slots "+me+" 4 at once lost after 1h: 0.5, 2 used")
	})
}

// The next window is reported again. That of a fixed or calendar window begins when the window
// ends, any other one a window after the call that reached the threshold.
func TestThresholdOfTheNextWindow(t *testing.T) {
	for name, test := range map[string]struct {
		limit       core.Limit
		again, last time.Duration // after the first report: when use rises again, and when it is reported
	}{
		"fixed":    {core.PerHour(4).Fixed(), 0, time.Hour - 10*time.Minute},
		"calendar": {core.PerHour(4).Aligned(), 0, time.Hour - 10*time.Minute},
		"sliding":  {core.PerHour(4), time.Hour, time.Hour},
		"bucket":   {core.PerHour(4).Bucket(8), 2 * time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			options, heard := warning(core.Options{})
			limiter, clock := atTestTime(t, options)
			half := test.limit.Max / 2
			if test.limit.Burst > 0 {
				half = test.limit.Burst / 2
			}
			check := limiter.MustCheck(core.Rule{Name: "n", Limit: test.limit, Warn: []float64{0.5}})
			use := func(n int) {
				for range n {
					check.Allow(newView("GET", "/"), "s")
				}
			}
			reset := func() {
				if _, err := limiter.MustCounter("n", test.limit).Reset(background, "s"); err != nil {
					t.Fatal(err)
				}
			}
			use(1)
			clock.add(10 * time.Minute)
			if test.limit.Burst > 0 {
				use(1) // in place of what has come back
			}
			use(half - 1)
			heard.await(t, 1)
			clock.add(test.last - time.Second)
			if test.again > 0 { // otherwise Reset would start another window
				reset()
				use(half)
				core.AwaitReports(limiter)
			}
			heard.await(t, 1)
			clock.add(time.Second)
			if test.again > 0 {
				reset()
			}
			use(half)
			heard.await(t, 2)
		})
	}
}

// Use that stays above a threshold is reported once, however many windows pass.
func TestThresholdThatStaysReached(t *testing.T) {
	for name, test := range map[string]struct {
		limit core.Limit
		began int // how many calls come at once in the beginning
	}{"log": {core.PerHour(8).Log(), 1}, "sliding": {core.PerHour(8), 1}, "bucket": {core.PerHour(6).Bucket(8), 5}} {
		t.Run(name, func(t *testing.T) {
			options, heard := warning(core.Options{})
			limiter, clock := atTestTime(t, options)
			guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: test.limit, Warn: []float64{0.5}})
			for range test.began - 1 {
				wantStatus(t, guard, newView("GET", "/"), 200)
			}
			for range 40 { // six in an hour
				wantStatus(t, guard, newView("GET", "/"), 200)
				core.AwaitReports(limiter)
				clock.add(10 * time.Minute)
			}
			wantReports(t, heard.all(), "n "+me+" "+test.limit.String()+": 0.5, 4 used")
		})
	}
}

// In Redis, each short window is reported at most once by three processes, and by the clock of
// Redis.
func TestThresholdsOfShortWindows(t *testing.T) {
	const window, subjects = 100 * time.Millisecond, 5
	options, heard := warning(core.Options{Redis: redistest.Start(t).Client(t)})
	var fleet [3]*core.Limiter
	var load sync.WaitGroup
	end := time.Now().Add(6 * window)
	for i := range fleet {
		fleet[i] = newLimiter(t, options)
		check := fleet[i].MustCheck(core.Rule{Name: "n", Limit: core.Per(9, window).Aligned(), Warn: []float64{0.3}})
		load.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				check.Allow(newView("GET", "/"), fmt.Sprint("s", n%subjects))
			}
		})
	}
	load.Wait()
	for _, limiter := range fleet {
		limiter.Close()
	}
	found := make(map[string]int)
	for _, r := range heard.all() {
		of := fmt.Sprint(r.Key, r.Time.UnixMicro()/window.Microseconds())
		if found[of]++; found[of] > 1 {
			t.Errorf("a window is reported %d times: %+v", found[of], r)
		}
	}
	if len(found) == 0 {
		t.Error("no window is reported")
	}
}

// Reset forgets what was reported, and other processes learn of it within a second.
func TestResetForgetsThresholds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		rules := []core.Rule{
			{Name: "n", Limit: core.PerHour(2), Also: []core.Limit{core.PerDay(4)}, Warn: []float64{0.5}, Mode: core.DryRun},
			{Name: "m", Limit: core.PerHour(2), Plan: planOf("pro"), Plans: map[string]core.Limit{"pro": core.PerDay(2).Fixed()}, Warn: []float64{0.5}},
		}
		guard := newGuard(t, limiter, rules...)
		for round := range 3 {
			wantStatus(t, guard, newView("GET", "/"), 200)
			wantStatus(t, guard, newView("GET", "/"), 200)
			heard.await(t, 3*(round+1))
			if changed, err := guard.Reset(background, me); !changed || err != nil {
				t.Errorf("Reset: %v, %v", changed, err)
			}
		}
		if changed, err := guard.Reset(background, me); changed || err != nil {
			t.Errorf("a second Reset: %v, %v", changed, err)
		}
	})
}

// Subjects of any bytes are reported as they are, and never for each other.
func TestThresholdsOfEverySubject(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options, heard := warning(options)
		limiter := newLimiter(t, options)
		check := limiter.MustCheck(core.Rule{Name: "n", Limit: core.PerHour(2), Warn: []float64{0.5, 1}})
		var want []string
		for c := range 256 {
			for _, subject := range []string{string([]byte{byte(c)}), "}" + string([]byte{byte(c)}) + strings.Repeat("x", 2*c)} {
				check.Allow(newView("GET", "/"), subject)
				check.Allow(newView("GET", "/"), subject)
				want = append(want, subject+"0.5", subject+"1")
			}
		}
		limiter.Close()
		var got []string
		for _, r := range heard.all() {
			got = append(got, r.Key+fmt.Sprint(r.Fraction))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d reports, want %d of all subjects", len(got), len(want))
		}
	})
}

// Without Redis, a flood of subjects leaves no more notices than MaxKeys.
func TestAFloodOfThresholds(t *testing.T) {
	options, _ := warning(core.Options{MaxKeys: 1_000})
	limiter := newLimiter(t, options)
	check := limiter.MustCheck(core.Rule{Name: "n", Limit: core.PerHour(1), Warn: []float64{1}})
	for i := range 20_000 {
		check.Allow(newView("GET", "/"), fmt.Sprint("s", i))
	}
	limiter.Close()
	if n := limiter.Stats().Keys; n > 1_000 {
		t.Errorf("%d keys are kept", n)
	}
}

// A panic in OnThreshold is logged, and costs one report.
func TestOnThresholdPanics(t *testing.T) {
	var log logtest.Log
	options, heard := warning(core.Options{Logger: log.Logger()})
	options.OnThreshold = func(ctx context.Context, r core.Threshold) {
		if r.Fraction < 1 {
			panic(errors.New("out of order"))
		}
		heard.note(ctx, r)
	}
	limiter := newLimiter(t, options)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(2), Warn: []float64{0.5, 1}})
	wantServed(t, guard, newView("GET", "/"), 200, 200, 200)
	limiter.Close()
	wantReports(t, heard.all(), "n "+me+" 2/h: 1, 2 used")
	if log.Count("level=ERROR", "OnThreshold panicked", "out of order", "rule=n", "threshold_test.go") != 1 {
		t.Error(log.String())
	}
}

// If OnThreshold hangs, calls go on, further reports are dropped, and Close waits no longer than
// Timeout. Then the context of the report ends.
func TestOnThresholdHangs(t *testing.T) {
	var log logtest.Log
	ended := make(chan struct{})
	limiter := newLimiter(t, core.Options{
		Logger: log.Logger(), Timeout: 20 * time.Millisecond,
		OnThreshold: func(ctx context.Context, _ core.Threshold) {
			<-ctx.Done()
			close(ended) // which panics if there is another report
		},
	})
	check := limiter.MustCheck(core.Rule{Name: "n", Limit: core.PerHour(1), Warn: []float64{1}})
	for i := range 5_000 {
		if status(check.Allow(newView("GET", "/"), fmt.Sprint("s", i))) != 200 {
			t.Fatal("a call is refused")
		}
	}
	limiter.Close()
	<-ended
	if log.Count("level=WARN", "not reported", "too many", "OnThreshold return quickly") == 0 || log.Count("panicked") > 0 {
		t.Error(log.String())
	}
}

// A missing right turns the reports off, with one line in the log. Decisions stay as they are.
func TestThresholdsWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	line := []string{"ACL", "SETUSER", "limits", "on", ">p", "~accesslimit:{*}:n:*", "+@all"} // the counters of n, and no notices
	permit(t, admin, "", line)
	var log logtest.Log
	options, heard := warning(core.Options{Logger: log.Logger(), Redis: server.Client(t, func(o *redis.Options) { o.Username, o.Password = "limits", "p" })})
	limiter := newLimiter(t, options)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(2), Warn: []float64{0.5, 1}})
	wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 429)
	limiter.Close()
	wantReports(t, heard.all())
	if log.Count("thresholds are not reported", "lacks a right", "all keys that begin with Options.Prefix", failure.RightsPage) != 1 || log.Count("threshold") != 1 {
		t.Error(log.String())
	}
}

// A key that holds something else is left as it is, and the log says so.
func TestThresholdsOfAForeignKey(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var log logtest.Log
	options, heard := warning(core.Options{Redis: client, Logger: log.Logger()})
	limiter := newLimiter(t, options)
	limit := core.PerHour(2)
	foreign := core.NoticeKey(me, "n", limit, 0.5)
	if err := client.RPush(background, foreign, "in the way").Err(); err != nil {
		t.Fatal(err)
	}
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: limit, Warn: []float64{0.5, 1}})
	wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 429)
	limiter.Close()
	wantReports(t, heard.all(), "n "+me+" 2/h: 1, 2 used")
	if log.Count("level=ERROR", "a threshold is not reported", foreign) != 1 || client.LLen(background, foreign).Val() != 1 {
		t.Error(log.String())
	}
	if left := client.PTTL(background, core.NoticeKey(me, "n", limit, 1)).Val(); left <= 0 || left > time.Hour {
		t.Errorf("a notice lives for %v", left)
	}
}

func TestWarnRefused(t *testing.T) {
	limiter := newLimiter(t, core.Options{OnThreshold: func(context.Context, core.Threshold) {}})
	for _, warn := range [][]float64{
		{0}, {-0.1}, {1.1}, {math.NaN()}, {math.Inf(1)}, {0.5, 0.5}, {1, 0.5}, {0.1, 0.2, 0.3, 0.4, 0.5}, {0.5, math.NaN()},
	} {
		var wrong *core.RuleError
		if _, err := limiter.Guard(core.Rule{Seconds: 1, Warn: warn}); !errors.As(err, &wrong) || wrong.Field != "Warn" {
			t.Errorf("%v: %v", warn, err)
		}
	}
	var wrong *core.RuleError
	if _, err := limiter.Guard(core.Rule{Seconds: 1, Warn: []float64{1}, Lease: 2}); !errors.As(err, &wrong) || wrong.Field != "Lease" {
		t.Error(err)
	}
	if _, err := newLimiter(t, core.Options{}).Guard(core.Rule{Seconds: 1, Warn: []float64{1}}); err == nil || !strings.Contains(err.Error(), "needs Options.OnThreshold") {
		t.Error(err)
	}
	// The rule keeps its own copy.
	warn := []float64{math.SmallestNonzeroFloat64, 0.5, 0.75, 1}
	guard := newGuard(t, limiter, core.Rule{Seconds: 1, Warn: warn})
	warn[0] = 7
	if got := guard.Rules()[0].Warn; cmp.Compare(got[0], 7) == 0 {
		t.Errorf("Warn is %v", got)
	}
}

// If several rules of one name decide a call together, the thresholds of all of them are reported,
// each once.
func TestThresholdsOfRulesThatShareACounter(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for n, warn := range [][2][]float64{{{0.5, 1}, nil}, {nil, {0.5, 1}}, {{0.5}, {0.5, 1}}, {{1}, {0.5}}} {
			options, heard := warning(options)
			limiter, name := newLimiter(t, options), fmt.Sprint("n", n)
			guard := newGuard(t, limiter,
				core.Rule{Name: name, Limit: core.PerHour(4), Warn: warn[0]}, core.Rule{Name: name, Limit: core.PerHour(4), Warn: warn[1]})
			for range 6 {
				guard.Check(newView("GET", "/"))
			}
			limiter.Close()
			wantReports(t, heard.all(), name+" "+me+" 4/h: 0.5, 2 used", name+" "+me+" 4/h: 1, 4 used")
		}
	})
}

// Reports that wait hold a bounded part of the memory, however long subjects are.
func TestThresholdsOfLongSubjects(t *testing.T) {
	var logged logtest.Log
	stop := make(chan struct{})
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: logged.Logger(), OnThreshold: func(context.Context, core.Threshold) { <-stop }})
	t.Cleanup(limiter.Close)
	t.Cleanup(func() { close(stop) })
	long, subjects := strings.Repeat("x", 1<<20), 0
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(1), Warn: []float64{1}, Key: func(core.Request) (string, error) {
		subjects++
		return long + fmt.Sprint(subjects), nil
	}})
	before := heapInUse()
	for range 100 {
		guard.Check(newView("GET", "/"))
	}
	if grown := int64(heapInUse()) - int64(before); grown > 32<<20 || logged.Count("too many reports wait") == 0 {
		t.Errorf("reports of 100 subjects of a megabyte hold %d bytes", grown)
	}
}

// Each limit has its own thresholds: of a limit that was raised or lowered, of a plan, or of an
// override, each is reported once in a window, by whichever process, however often it changes.
func TestThresholdsOfAChangedLimit(t *testing.T) {
	changes := map[string][2]core.Limit{
		"sliding": {core.PerHour(4), core.PerHour(8)},
		"fixed":   {core.PerHour(4).Fixed(), core.PerHour(8).Fixed()},
		"burst":   {core.PerHour(4).Bucket(4), core.PerHour(4).Bucket(8)},
		"rate":    {core.PerHour(4).Bucket(8), core.PerHour(8).Bucket(8)},
		"slots":   {core.InFlight(4).LostAfter(time.Hour), core.InFlight(8).LostAfter(time.Hour)},
	}
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		options, heard := warning(options)
		for name, limits := range changes {
			before := len(heard.all())
			processes := 2
			if options.Redis == nil {
				processes = 1
			}
			for range processes {
				limiter := newLimiter(t, options)
				changeLimits(t, limiter, name, limits)
				limiter.Close()
			}
			var got []string
			for _, r := range heard.all()[before:] {
				got = append(got, r.Limit.String())
			}
			own := limits[0]
			if own.Max = 6; own.Burst > 0 {
				own.Burst = 6
			}
			if want := []string{limits[0].String(), limits[1].String(), own.String()}; !slices.Equal(got, want) {
				t.Errorf("%s: the limits in reports are %q, want %q", name, got, want)
			}
		}
	})
}

// changeLimits reaches half of the limit of a rule, which is raised and lowered, then that of a plan
// and that of an override, and all of them again.
func changeLimits(t *testing.T, limiter *core.Limiter, name string, limits [2]core.Limit) {
	t.Helper()
	plan := "free"
	rule := core.Rule{
		Name: name, Limit: limits[0], Warn: []float64{0.5}, Count: is(200), Overrides: true,
		Plans: map[string]core.Limit{"pro": limits[1]}, Plan: func(core.Request) (string, error) { return plan, nil },
	}
	raised := rule
	raised.Limit = limits[1]
	set, err := limiter.RuleSet(rule)
	if err != nil {
		t.Fatal(err)
	}
	guard := set.MustGuard(name)
	overrides, err := operate.New(limiter).Overrides(name)
	if err != nil {
		t.Fatal(err)
	}
	changes := []func() error{
		func() error { return nil },
		func() error { return set.Replace("raised", raised) },
		func() error { return set.Replace("lowered", rule) },
		func() error { plan = "pro"; return nil },
		func() error {
			return overrides.Set(background, me, operate.Override{Max: 6, Burst: min(6, limits[0].Burst*6)})
		},
		func() error { plan = "free"; _, err := overrides.Remove(background, me); return err },
	}
	for _, change := range slices.Concat(changes, changes) {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		reachHalf(t, guard)
	}
}

// reachHalf makes calls until half of the limit is in use, and gives all of them back.
func reachHalf(t *testing.T, guard *core.Guard) {
	t.Helper()
	var answers []core.Answer
	for range 4 {
		answers = append(answers, wantStatus(t, guard, newView("GET", "/"), 200))
	}
	for _, a := range answers {
		a.Run(func() int { return 500 })
	}
}
