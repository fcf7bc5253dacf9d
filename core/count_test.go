package core_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

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
			ran := 0
			answer.Run(func() int { ran++; return 401 })
			if ran != 1 {
				t.Errorf("the handler ran %d times", ran)
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
