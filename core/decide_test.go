package core_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A call that costs nothing is not decided, nor told of. A negative cost counts as one, and is logged.
func TestExtremeCosts(t *testing.T) {
	for n, left := range map[int]int{0: 10, -3: 9, math.MinInt: 9} {
		var log logtest.Log
		var heard decisions
		limiter, v := newLimiter(t, core.Options{Logger: log.Logger(), OnDecision: heard.note}), newView("GET", "/")
		wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 10, Cost: cost(n)}), v, 200)
		wantLeft(t, limiter, "n", me, core.PerHour(10), left)
		if len(heard.heard) != 10-left || (len(v.Response) > 0) != (left < 10) || log.Count("cost is negative") != 10-left {
			t.Errorf("a cost of %d: %v, %v, %s", n, heard.heard, v.Response, log.String())
		}
	}
}

// A cost by size that can never fit gets a refusal that says so. A unit below one byte is refused
// when the rule is made.
func TestCostBySize(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rule := core.Rule{Name: "n", Seconds: 3600, MaxCount: 10, Also: []core.Limit{core.PerDay(4), core.InFlight(2)}, Cost: core.CostBySize(100)}
	guard := newGuard(t, limiter, rule)
	for size, want := range map[int64]int{401: 413, math.MaxInt64: 413, 0: 200} {
		v := newView("POST", "/")
		v.BodySize = size
		answer := wantStatus(t, guard, v, want)
		if r := answer.Refusal; r != nil && (r.Decision.Reason != core.CostTooHigh || r.Code != 3 || r.RetryAfter != 0 || !strings.Contains(r.Message, "body")) {
			t.Errorf("%+v", r)
		}
	}
	v, planned := newView("POST", "/"), rule // a size of -1, which takes all
	planned.Name, planned.LimitFor = "planned", func(core.Request) (core.Limit, error) { return core.PerHour(3), nil }
	wantStatus(t, newGuard(t, limiter, planned), v, 200)
	wantLeft(t, limiter, "planned", me, core.PerHour(3), 0)
	v.BodySize = math.MaxInt64 // a known size, though it is the largest
	for _, most := range []int{5, mostPermits} {
		wantStatus(t, newGuard(t, limiter, core.Rule{Name: fmt.Sprint("bytes ", most), Seconds: 1, MaxCount: most, Cost: core.CostBySize(1)}, core.Rule{Name: "one", Seconds: 1, Cost: cost(1)}), v, 413)
	}
	rule.Name, rule.Cost = "plain", cost(11)
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "first", Seconds: 1, Cost: core.CostBySize(1)}, rule), newView("POST", "/"), 400)
	if !panics(func() { core.CostBySize(0) }) {
		t.Error("a unit of no bytes is accepted")
	}
}

// ownersFault panics in the functions of the service owner that it names.
type ownersFault struct{ in string }

func (f *ownersFault) here(in string) {
	if f.in == in {
		panic(in)
	}
}

// Enabled implements slog.Handler.
func (f *ownersFault) Enabled(context.Context, slog.Level) bool { f.here("Logger"); return false }

func (f *ownersFault) Handle(context.Context, slog.Record) error { return nil }
func (f *ownersFault) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f *ownersFault) WithGroup(string) slog.Handler             { return f }

func slotsOfAnHour(n int) core.Limit {
	return core.Limit{Max: n, Window: time.Hour, Algorithm: core.Concurrency}
}

// A panic in OnDecision of a direct call leaves nothing behind that only the caller could have
// given back.
func TestAPanicOfADirectCall(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		fault := new(ownersFault)
		options.OnDecision = func(context.Context, core.Event) { fault.here("OnDecision") }
		limiter, bucket := newLimiter(t, options), core.PerHour(1).Bucket(1)
		fault.in = "OnDecision"
		wantPanic(t, fault.in, func() { _, _, _ = holdBy(limiter, background, "held", "s", slotsOfAnHour(1)) })
		wantPanic(t, fault.in, func() { _, _ = limiter.MustPacer("turn", bucket).Reserve(background, "s", 1) })
		wantPanic(t, fault.in, func() { _, _ = limiter.MustPacer("turn", bucket).Acquire(background, "s", 1) })
		wantLeft(t, limiter, "held", "s", slotsOfAnHour(1), 1)
		limitertest.Eventually(t, "the turns come back", func() bool {
			d, err := limiter.MustPacer("turn", bucket).Peek(background, "s")
			return err == nil && d.Remaining == 1
		})
	})
}

// A logger that panics while the store fails keeps nothing from being given back.
func TestAPanicOfTheLogger(t *testing.T) {
	fault := new(ownersFault)
	// A replica answers, and refuses to write. If a server is out of reach, a goroutine logs that,
	// and nobody could recover its panic.
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", "1")
	options := core.Options{Redis: replica.Client(t), Timeout: patient, Logger: slog.New(fault)}
	limiter := newLimiter(t, options)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.Limit{Max: 1, Window: time.Hour, Algorithm: core.Concurrency}, OnStoreError: core.CountLocally(1)})
	fault.in = "Logger"
	wantPanic(t, fault.in, func() { guard.Check(newView("GET", "/")) })
	fault.in = ""
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
}

// A mistake that would panic in a request panics when the service is put together.
func TestNilFunctionsPanicAtOnce(t *testing.T) {
	for name, build := range map[string]func(){
		"BearerToken":  func() { core.BearerToken(nil) },
		"Cookie":       func() { core.Cookie("session", nil) },
		"FirstOf":      func() { core.FirstOf(nil) },
		"Join":         func() { core.Join(core.ByIP, nil) },
		"ContextValue": func() { core.ContextValue([]string{}) },
		"ByValue":      func() { core.ByValue(nil) },
	} {
		if !panics(build) {
			t.Errorf("%s: no panic", name)
		}
	}
}

// A caller whose deadline passes while a limit is looked up gets that answer, and is not asked to
// log in.
func TestCallerWhoseContextEndsIsNotAskedToLogIn(t *testing.T) {
	var reasons []core.Reason
	options := deadRedis(t)
	options.Identify = func(core.Request) (string, error) { return "", nil }
	options.OnDecision = func(_ context.Context, e core.Event) {
		d := e.Decision
		reasons = append(reasons, d.Reason)
	}
	guard := newGuard(t, newLimiter(t, options), core.Rule{Name: "ip", Seconds: 60}, core.Rule{Name: "user", Seconds: 60, NeedLogin: true})
	ctx, cancel := context.WithCancel(background)
	v := newView("GET", "/")
	v.Ctx = &endsLater{Context: ctx, end: cancel, after: 1}
	guard.Check(v)
	late, cancel := context.WithTimeout(background, -1)
	defer cancel()
	v.Ctx = late
	if answer := guard.Check(v); answer.Refusal == nil || answer.Refusal.Code != 4 { // DEADLINE_EXCEEDED
		t.Errorf("after the deadline: %+v", answer.Refusal)
	}
	if len(reasons) != 2 || reasons[0] != core.ContextEnded || reasons[1] != core.ContextEnded {
		t.Errorf("the reasons are %v, want %s", reasons, core.ContextEnded)
	}
}

// endsLater is a context that ends after so many calls of Err.
type endsLater struct {
	context.Context
	end   context.CancelFunc
	after int
}

func (e *endsLater) Err() error {
	if e.after--; e.after < 0 {
		e.end()
	}
	return e.Context.Err()
}

func TestHeadersOfSeveralLimits(t *testing.T) {
	rule := core.Rule{
		Name: "api", Seconds: 1, MaxCount: 10,
		Also: []core.Limit{
			{Max: 50, Window: 10 * time.Second}, core.PerCalendarDay(70, "UTC"), core.InFlight(3),
			core.PerHour(60), {Max: 80, Window: time.Hour, Algorithm: core.FixedWindow}, core.PerHour(90).Bucket(95),
			core.PerCalendarMonth(99, "UTC"), core.PerCalendarMonth(98, "Asia/Tokyo"),
			{Max: 40, Window: time.Second, Algorithm: core.FixedWindow},
		},
	}
	for name, style := range map[string]core.HeaderStyle{"draft 10": core.HeadersDraft10, "draft 7": core.HeadersDraft7, "X": core.HeadersXRateLimit} {
		t.Run(name, func(t *testing.T) {
			limiter, _ := atTestTime(t, core.Options{Headers: style})
			v := newView("GET", "/")
			wantStatus(t, newGuard(t, limiter, rule), v, 200)
			want := map[string]map[string]string{
				"draft 10": {
					"Ratelimit-Policy": `"api";q=10;w=1, "api-10s";q=50;w=10, "api-day";q=70;w=86400, "api-at-once";q=3;qu="concurrent-requests", ` +
						`"api-1h";q=60;w=3600, "api-1h-2";q=80;w=3600, "api-1h-3";q=95;w=3800, "api-month";q=99;w=2678400, "api-month-2";q=98;w=2678400, "api-1s";q=40;w=1`,
					"Ratelimit": `"api";r=9;t=2, "api-10s";r=49;t=11, "api-day";r=69;t=86400, "api-at-once";r=2, ` +
						`"api-1h";r=59;t=3713, "api-1h-2";r=79;t=3600, "api-1h-3";r=94;t=40, "api-month";r=98;t=2419200, "api-month-2";r=97;t=2386800, "api-1s";r=39;t=1`,
				},
				// The slots are not shown.
				"draft 7": {"Ratelimit-Policy": "10;w=1", "Ratelimit": "limit=10, remaining=9, reset=2"},
				"X":       {"X-Ratelimit-Limit": "10", "X-Ratelimit-Remaining": "9"},
			}[name]
			for header, value := range want {
				if got := v.Response[header]; len(got) != 1 || got[0] != value {
					t.Errorf("%s:\n%q, want\n%q", header, got, value)
				}
			}
			if name == "draft 10" {
				parseList(t, v.Response["Ratelimit-Policy"])
				parseList(t, v.Response["Ratelimit"])
			}
		})
	}
}
