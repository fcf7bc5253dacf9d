package core_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// failedLogins lets three passwords be tried.
var failedLogins = core.Rule{Name: "n", Seconds: 3600, MaxCount: 3, Count: is(http.StatusUnauthorized)}

// A counter that several rules share keeps the charge if any of them counts the call, in whatever
// order they are given.
func TestCountOfRulesThatShareACounter(t *testing.T) {
	always := core.Rule{Name: "n", Seconds: 3600}
	when := func(status int) core.Rule {
		rule := always
		rule.Count = is(status)
		return rule
	}
	for name, test := range map[string]struct {
		rules []core.Rule
		left  map[int]int // by the outcome
	}{
		"the second counts all": {[]core.Rule{when(401), always}, map[int]int{200: 4, 401: 4}},
		"the first counts all":  {[]core.Rule{always, when(401)}, map[int]int{200: 4, 401: 4}},
		"both count some":       {[]core.Rule{when(401), when(403)}, map[int]int{200: 5, 401: 4, 403: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			for outcome, left := range test.left {
				limiter := newLimiter(t, core.Options{})
				wantServed(t, newGuard(t, limiter, test.rules...), newView("GET", "/"), outcome, outcome)
				wantLeft(t, limiter, "n", me, core.PerHour(5), left)
			}
		})
	}
}

// A response is watched only if its status is needed, or its end must be held back.
func TestWatchedResponses(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	dry := failedLogins
	dry.Mode = core.DryRun
	free := failedLogins
	free.Cost = cost(0)
	for name, test := range map[string]struct {
		rules              []core.Rule
		http1, head, http2 bool
	}{
		"a rule that counts all": {[]core.Rule{{Name: "plain", Seconds: 60}}, false, false, false},
		"by outcome":             {[]core.Rule{{Name: "plain", Seconds: 60}, failedLogins}, true, true, true},
		"only tried":             {[]core.Rule{dry}, true, true, true},
		"only slots":             {[]core.Rule{atOnceAs("slots", 1)}, true, false, false},
		"costs nothing":          {[]core.Rule{free}, false, false, false},
		"does not apply":         {[]core.Rule{{Name: "p", Seconds: 60, Methods: []string{"PUT"}, Count: is(200)}}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := wantStatus(t, newGuard(t, limiter, test.rules...), newView("GET", "/"), 200)
			if answer.Final() == test.http1 {
				t.Errorf("the answer is final: %t", answer.Final())
			}
			http1, http2 := httptest.NewRequest("GET", "/", nil), httptest.NewRequest("GET", "/", nil)
			http2.ProtoMajor = 2
			for r, want := range map[*http.Request]bool{http1: test.http1, http2: test.http2, httptest.NewRequest("HEAD", "/", nil): test.head} {
				w := httptest.NewRecorder()
				watched, response := answer.Watch(w, r)
				if own := watched == http.ResponseWriter(w); own == want || (response != nil) != want {
					t.Errorf("%s %s: watched: %v, want %v", r.Method, r.Proto, !own, want)
				}
				if response.Status() != 0 {
					t.Errorf("the status is %d before any", response.Status())
				}
				response.Finish()
			}
		})
	}
	refused := wantStatus(t, newGuard(t, limiter, core.Rule{Name: "l", Seconds: 60, NeedLogin: true, Count: is(200)}), newView("GET", "/"), 401)
	if _, response := refused.Watch(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); response != nil {
		t.Error("a refused call has no outcome to wait for")
	}
}

// If a charge cannot be given back, that is logged, and the caller still gets the handler's answer.
func TestCountWithoutRedis(t *testing.T) {
	var log logtest.Log
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient / 20, Logger: log.Logger()})
	guard := newGuard(t, limiter, failedLogins)
	serveInside(t, guard, server.Kill)
	if log.Count("level=WARN", "could not be given back", "error=") != 1 {
		t.Errorf("want one line with the cause, got: %s", log.String())
	}
	answer := wantStatus(t, guard, newView("GET", "/"), 200) // FailOpen: uncounted
	if _, response := answer.Watch(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); response != nil {
		t.Error("there is nothing to give back of what nobody counted")
	}
}

// wantNoRefund checks that a decision gives nothing back, with an error that says so.
func wantNoRefund(t testing.TB, limiter *core.Limiter, d core.Decision, n int, value string) {
	t.Helper()
	wantRuleError(t, limiter.Refund(background, d, n), d.Rule, "n", value)
}

// A bucket that is in debt cannot tell who waits behind a charge, so what a refund does not give back is
// counted as lost. A turn that others wait behind is not lost: their waits already include it.
func TestARefundInDebtIsCountedAsLost(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		bucket := core.Limit{Max: 1, Window: 24 * time.Hour, Burst: 10, Algorithm: core.TokenBucket}
		wantLost := func(want uint64) {
			t.Helper()
			if n := limiter.Stats().RefundsLost; n != want {
				t.Errorf("%d lost, want %d", n, want)
			}
		}
		pacer := limiter.MustPacer("turns", bucket)
		first, err := pacer.Reserve(background, "s", 10)
		if err == nil {
			_, err = pacer.Reserve(background, "s", 4)
		}
		if err != nil {
			t.Fatal(err)
		}
		refund(t, limiter, first, 10)
		wantLost(0)
		d := charge(t, limiter, "n", "s", bucket, 8)
		if _, err := limiter.MustCounter("n", bucket).Charge(background, "s", 5); err != nil {
			t.Fatal(err)
		}
		refund(t, limiter, d, 7) // nothing comes back, as if turns were behind it
		wantLost(7)
		guard := newGuard(t, limiter, core.Rule{Name: "counted", Limit: bucket, Count: is(200), Cost: cost(8)})
		wantStatus(t, guard, newView("GET", "/"), ok).Run(func() int {
			_, err = limiter.MustCounter("counted", bucket).Charge(background, me, 5)
			return 500
		})
		if err != nil {
			t.Fatal(err)
		}
		wantLost(15)
	})
}

// A refund without an answer is not repeated, because it may have been carried out.
func TestRefundWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})
	d := charge(t, limiter, "n", "s", core.PerHour(3), 2)
	server.Kill()
	if err := limiter.Refund(background, d, 2); !errors.Is(err, core.ErrStore) {
		t.Errorf("%v, want ErrStore", err)
	}
	wantNoRefund(t, limiter, d, 1, "1")
}

// If the caller's context has ended, the refund can be repeated with another context, because the
// first attempt recorded nothing.
func TestRefundOfAnEndedCaller(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	d := charge(t, limiter, "n", "s", core.PerHour(3), 2)
	ended, cancel := context.WithCancel(background)
	cancel()
	if err := limiter.Refund(ended, d, 2); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
		t.Errorf("%v, want the context's error", err)
	}
	refund(t, limiter, d, 2)
	wantLeft(t, limiter, "n", "s", core.PerHour(3), 3)
}

// A charge that a handler refunded by its decision is not given back once more when the outcome
// does not count.
func TestRefundAndCountGiveBackOnce(t *testing.T) {
	limiter, limit := newLimiter(t, core.Options{Expose: true}), core.PerHour(4).Fixed()
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: limit, Cost: cost(2), Count: is(200)})
	wantServed(t, guard, newView("GET", "/"), ok, 200)
	answer := wantStatus(t, guard, newView("GET", "/"), 200)
	answer.Run(func() int {
		d, _ := core.DecisionFrom(answer.Context)
		refund(t, limiter, d, 1)
		return 500
	})
	wantLeft(t, limiter, "n", me, limit, 2)
}

// A decision can be refunded by the limiter that made it, and by no other with the same counters.
func TestRefundByAnotherLimiter(t *testing.T) {
	one, two := newLimiter(t, core.Options{}), newLimiter(t, core.Options{})
	mine, err := one.MustCounter("n", core.PerHour(2)).Allow(background, "s")
	if err != nil {
		t.Fatal(err)
	}
	charge(t, two, "n", "s", core.PerHour(2), 1)
	var wrong *core.RuleError
	if err := two.Refund(background, mine, 1); !errors.As(err, &wrong) || wrong.Field != "decision" {
		t.Errorf("another limiter refunds it: %v", err)
	}
	wantLeft(t, two, "n", "s", core.PerHour(2), 1)
	refund(t, one, mine, 1)
}
