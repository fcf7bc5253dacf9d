package operate_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// An operator asks why user 42 is refused. Printing x itself shows all of it.
func ExampleOperator_Explain() {
	limiter := newExampleLimiter()
	reply := core.Rule{Name: "reply", Limit: core.PerCalendarDay(1, "UTC"), Key: core.ByUser, Methods: []string{"POST"}}
	service := nethttplimit.New(limiter, reply)(http.NotFoundHandler())
	call := httptest.NewRequest("POST", "/reply", nil)
	call.Header.Set("User", "42")
	service.ServeHTTP(httptest.NewRecorder(), call)

	ctx := call.Context()
	for _, method := range []string{"POST", "GET"} {
		x, err := operate.New(limiter).Explain(ctx, operate.Call{Method: method, Path: "/reply", RemoteAddr: "203.0.113.7", User: "42"})
		if err != nil {
			panic(err)
		}
		r := x.Rules[0]
		fmt.Printf("%s: %s; %q applies: %t, because %s\n", method, x.Reason, r.Name, r.Applies, r.Because)
		for _, l := range r.Limits {
			fmt.Printf("%v for %s: %d used, %d left\n", l.Limit, r.Subject, l.Used, l.Remaining)
		}
	}
	// Output:
	// POST: limit_exceeded; "reply" applies: true, because method POST matches POST
	// 1/day@UTC for user:42: 1 used, 0 left
	// GET: allowed; "reply" applies: false, because method GET is not POST
}

// An operator asks which limits are in force for user 42, and what is used of them.
func ExampleOperator_Inspect() {
	limiter := newExampleLimiter()
	reply := limiter.MustGuard(core.Rule{Name: "reply", Limit: core.PerCalendarDay(5, "UTC"), Key: core.ByUser})
	call := httptest.NewRequest("POST", "/reply", nil)
	call.Header.Set("User", "42")
	nethttplimit.With(reply)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), call)

	overrides, err := operate.New(limiter).Overrides("reply")
	if err != nil {
		panic(err)
	}
	if err := overrides.Set(call.Context(), "user:42", operate.Override{Limits: []core.Limit{core.PerCalendarDay(20, "UTC")}, Note: "contract 17"}); err != nil {
		panic(err)
	}
	x, err := operate.New(limiter).Inspect(call.Context(), "user:42")
	if err != nil {
		panic(err)
	}
	for _, r := range x.Rules {
		for _, l := range r.Limits {
			fmt.Printf("%s: %v from the %s: %d used, %d left\n", r.Name, l.Limit, l.Source, l.Used, l.Remaining)
		}
	}
	// Output:
	// reply: 20/day@UTC from the override: 1 used, 19 left
}

// newExampleLimiter returns a limiter for users who say who they are.
func newExampleLimiter() *core.Limiter {
	limiter, err := core.New(core.Options{
		Logger:   slog.New(slog.DiscardHandler),
		Identify: func(r core.Request) (string, error) { return r.Header("User")[0], nil },
	})
	if err != nil {
		panic(err)
	}
	return limiter
}
