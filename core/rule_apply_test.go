package core_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

func at(route, path string) *fakeView {
	v := newView("GET", route)
	v.URLPath = path
	return v
}

// countedAs returns the name under which an unnamed rule counts a call.
func countedAs(t *testing.T, method, route string) string {
	t.Helper()
	var heard decisions
	guard := newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), core.Rule{Seconds: 1})
	guard.Check(newView(method, route))
	return heard.last(t, 1).Rule
}

func TestNamesOfUnnamedRules(t *testing.T) {
	for _, test := range []struct{ method, route, name string }{
		{"GET", "/users/:id", "GET /users/:id"},
		{"HEAD", "/users/:id", "GET /users/:id"},
		{"POST", "/users/:id", "POST /users/:id"},
		{"PATCH", "/", "PATCH /"},
		{"", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Check"},
		{"BREW", "/pot", "OTHER /pot"},
		{"get", "/pot", "OTHER /pot"},
		{"GET", "", "(no route)"},
		{"BREW", "", "(no route)"},
		{"", "", "(no route)"},
	} {
		if name := countedAs(t, test.method, test.route); name != test.name {
			t.Errorf("%q %q is %q, want %q", test.method, test.route, name, test.name)
		}
	}
}

func TestNamesOfRulesWithPaths(t *testing.T) {
	for name, rule := range map[string]core.Rule{
		"/a,/b/**":                        {Paths: []string{"/b/**", "/a"}},
		"GET,POST /a":                     {Paths: []string{"/a"}, Methods: []string{"POST", "GET"}},
		"GET /a/** except /a/free,/a/new": {Paths: []string{"/a/**"}, Methods: []string{"GET"}, Except: []string{"/a/new", "/a/free"}},
		"own":                             {Paths: []string{"/a"}, Name: "own"},
	} {
		var heard decisions
		rule.Seconds = 1
		guard := newGuard(t, newLimiter(t, core.Options{OnDecision: heard.note}), rule)
		wantStatus(t, guard, newView("GET", "/a"), 200)
		if d := heard.last(t, 1); d.Rule != name {
			t.Errorf("%q, want %q", d.Rule, name)
		}
	}
}

// Callers of some proxies make up routes. Each counts by itself, but the number of those that are
// kept is bounded.
func TestMadeUpRoutesStayBounded(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Seconds: 3600, MaxCount: 1})
	const kept = 2000
	for _, want := range []int{200, 429} {
		for i := range kept + 100 {
			wantStatus(t, guard, newView("", fmt.Sprint("/made/Up", i)), want)
		}
	}
	if names := namesInStats(limiter); len(names) > kept || !names[core.OtherNames] {
		t.Errorf("Stats has %d names, want at most %d, with one for the others", len(names), kept)
	}
}

// A route that the caller may have made up counts by itself, and is not kept until it is known.
func TestRoutesThatAreNotKnownToExist(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Seconds: 3600, MaxCount: 1})
	for _, want := range []int{200, 429} {
		for _, route := range []string{"/a", "/b"} {
			wantStatus(t, guard, unsure{newView("", route)}, want)
		}
	}
	wantStatus(t, guard, newView("", "/a"), 429)
	if names := namesInStats(limiter); len(names) != 2 || !names["/a"] || !names[core.OtherNames] {
		t.Errorf("Stats has the names %v, want /a and one for the others", names)
	}
}

// unsure is a call on a route that the caller may have made up.
type unsure struct{ adapter.View }

func (unsure) RouteUnsure() bool { return true }

// namesInStats returns the names of the rules that Stats shows.
func namesInStats(limiter *core.Limiter) map[string]bool {
	names := make(map[string]bool)
	for _, d := range limiter.Stats().Decisions {
		names[d.Rule] = true
	}
	return names
}

func TestTwoUnnamedRulesOnOneRouteAreWarnedAbout(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	router := newGuard(t, limiter, core.Rule{Seconds: 60, MaxCount: 100})
	route := newGuard(t, limiter, core.Rule{Seconds: 60, MaxCount: 50})
	other := newGuard(t, limiter, core.Rule{Seconds: 61}, core.Rule{Name: "named", Seconds: 60})
	for range 3 {
		for _, method := range []string{"GET", "HEAD"} {
			for _, guard := range []*core.Guard{router, route, other} {
				guard.Check(newView(method, "/shared"))
			}
		}
		router.Check(newView("GET", ""))
		route.Check(newView("GET", ""))
	}
	if log.Count("level=WARN", "GET /shared") != 1 || log.Count("level=WARN") != 1 {
		t.Errorf("want one warning, with the route, got: %s", log.String())
	}
}

// planned returns a rule of two calls an hour, or of the limit that the caller's plan has.
func planned(plan func(core.Request) (core.Limit, error)) core.Rule {
	return core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Key: core.ByUser, LimitFor: plan}
}

// If a plan is wrong, the rule's own limit takes its place, and that is logged once.
func TestInvalidPlans(t *testing.T) {
	for name, test := range map[string]struct {
		limit core.Limit
		err   error
		told  string
	}{
		"an error":          {core.Limit{}, errVerify, errVerify.Error()},
		"a limit and error": {core.PerHour(9), errVerify, errVerify.Error()},
		"no Max":            {core.Limit{Window: time.Hour}, nil, "Max = 0"},
		"negative":          {core.PerHour(-5), nil, "Max = -5"},
		"too large":         {core.PerHour(noMax()), nil, "10^12"},
		"no span":           {core.Limit{Max: 9}, nil, "Window = 0s"},
		"no zone":           {core.PerCalendarDay(9, ""), nil, "needs a zone"},
		"a long log":        {core.Limit{Max: 10_001, Window: time.Hour, Algorithm: core.SlidingLog}, nil, "10,000"},
		"a huge bucket":     {core.Limit{Max: 1, Window: 366*24*time.Hour - time.Microsecond, Burst: mostPermits, Algorithm: core.TokenBucket}, nil, "Burst"},
		"no algorithm":      {core.Limit{Max: 9, Window: time.Hour, Algorithm: 77}, nil, "Algorithm(77)"},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: whoSays})
			guard := newGuard(t, limiter, planned(func(core.Request) (core.Limit, error) { return test.limit, test.err }))
			wantServed(t, guard, by("a"), ok, 200, 200, 429)
			wantLeft(t, limiter, "n", "user:a", core.PerHour(2), 0)
			if log.Count("level=WARN", "rule=n", "plan could not be found", test.told) != 1 || log.Count("plan could not") != 1 {
				t.Errorf("want one line that says %q, got: %s", test.told, log.String())
			}
		})
	}
}

// Inside a handler nothing would give slots back, so a plan by Concurrency is ignored there. A guard
// takes its slots.
func TestAPlanOfSlotsInsideAHandler(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	rule := planned(func(core.Request) (core.Limit, error) { return core.InFlight(9), nil })
	check := limiter.MustCheck(rule)
	for i, want := range []int{200, 200, 429} {
		if got := status(check.Allow(newView("GET", "/"), "s")); got != want {
			t.Errorf("call %d: %d, want %d", i, got, want)
		}
	}
	wantLeft(t, limiter, "n", "s", core.InFlight(9), 9)
	if log.Count("level=WARN", "plan", "use Limiter.Slots") != 1 {
		t.Errorf("the log does not say what to do: %s", log.String())
	}
	rule.Key = nil
	serveInside(t, newGuard(t, limiter, rule), func() { wantLeft(t, limiter, "n", me, core.InFlight(9), 8) })
}

// If a service makes up a limit for each call, limits beyond a number are prepared anew each time,
// and take no memory.
func TestManyPlansTakeNoMemory(t *testing.T) {
	limiter := newLimiter(t, core.Options{MaxKeys: 100})
	core.UseAnswers(limiter, algorithm.Verdict{Remaining: 1, ResetAfter: 1})
	n := 0
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, LimitFor: func(core.Request) (core.Limit, error) {
		n++
		return core.PerDay(n), nil
	}})
	use := func(calls int) {
		t.Helper()
		for range calls {
			v := newView("GET", "/")
			wantStatus(t, guard, v, 200)
			if got, want := v.Response["Ratelimit-Policy"][0], fmt.Sprintf(`"n";q=%d;w=86400`, n); got != want {
				t.Fatalf("plan %d: %s, want %s", n, got, want)
			}
		}
	}
	use(2000)
	before := heapInUse()
	use(8_000)
	if grown := int64(heapInUse()) - int64(before); grown > 200_000 {
		t.Errorf("8,000 more limits keep %d bytes", grown)
	}
	runtime.KeepAlive(guard)
}

func TestUnlimitedDirectCalls(t *testing.T) {
	var heard decisions
	limiter := newLimiter(t, core.Options{OnDecision: heard.note})
	counter := limiter.MustCounter("n", core.Unlimited)
	for _, n := range []int{0, 1, math.MaxInt} {
		d, err := counter.AllowN(background, "s", n)
		if err != nil || !d.Allowed || d.Reason != core.Allowed || d.Limit != core.Unlimited || d.Remaining != math.MaxInt || d.Source != core.FromNobody || d.Key != "s" {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if granted, d, err := limiter.MustCounter("m", core.PerHour(1)).With(core.Unlimited).AllowUpTo(background, "s", math.MaxInt); granted != math.MaxInt || !d.Allowed || err != nil {
		t.Error(granted, d, err)
	}
	if d := heard.last(t, 4); d.Limit != core.Unlimited || limiter.Stats().Keys > 0 {
		t.Errorf("OnDecision received %+v; a caller without a limit has a key: %d", d, limiter.Stats().Keys)
	}
	if _, err := counter.Allow(background, ""); !isWrong(err) {
		t.Errorf("an empty subject: %v", err)
	}
	_, err := counter.AllowN(background, "s", -1)
	wantRuleError(t, err, "n", "n", "-1")
}
