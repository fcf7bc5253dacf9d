package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// hello is a handler that fails for calls without the right password.
var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/login" && r.FormValue("password") != "open sesame" {
		w.WriteHeader(http.StatusUnauthorized)
	}
})

// get calls a service and returns what it answers.
func get(service http.Handler, target string) *http.Response {
	w := httptest.NewRecorder()
	service.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w.Result()
}

// At most two in any minute, and three in any hour: a call is charged to both, or to none.
func ExampleRule_also() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	service := nethttplimit.New(limiter, core.Rule{
		Name: "api", Seconds: 60, MaxCount: 2, Also: []core.Limit{core.PerHour(3)},
	})(hello)
	for range 3 {
		fmt.Println(get(service, "/").StatusCode)
	}
	fmt.Println(get(service, "/").Header.Get("RateLimit-Policy"))
	// Output:
	// 200
	// 200
	// 429
	// "api";q=2;w=60, "api-1h";q=3;w=3600
}

// Only failed logins count: two wrong passwords an hour, and as many right ones as you like.
func ExampleRule_count() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	login := nethttplimit.New(limiter, core.Rule{
		Name: "login", Seconds: 3600, MaxCount: 2,
		Count: func(status int) bool { return status == http.StatusUnauthorized },
	})(hello)
	for _, password := range []string{"open+sesame", "guess", "open+sesame", "guess", "open+sesame"} {
		fmt.Println(password, get(login, "/login?password="+password).StatusCode)
	}
	// Output:
	// open+sesame 200
	// guess 401
	// open+sesame 200
	// guess 401
	// open+sesame 429
}

// A plan for each customer.
func ExampleRule_limitFor() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	plans := map[string]core.Limit{"gold": core.PerHour(3), "partner": core.Unlimited}
	service := nethttplimit.New(limiter, core.Rule{
		Name: "api", Seconds: 3600, MaxCount: 1,
		Key: func(r core.Request) (string, error) { return "customer:" + r.Header("X-Customer")[0], nil },
		LimitFor: func(r core.Request) (core.Limit, error) {
			if plan, ok := plans[r.Header("X-Customer")[0]]; ok {
				return plan, nil
			}
			return core.PerHour(1), nil
		},
	})(hello)
	for _, customer := range []string{"free", "gold", "partner"} {
		passed := 0
		for range 10 {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-Customer", customer)
			if service.ServeHTTP(w, r); w.Code == http.StatusOK {
				passed++
			}
		}
		fmt.Println(customer, passed)
	}
	// Output:
	// free 1
	// gold 3
	// partner 10
}

// Callers who go on when refused are banned for a day, and in the end for a week. Operators ban and
// unban by hand.
func ExampleBan() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	const day = 24 * time.Hour
	service := nethttplimit.New(limiter, core.Rule{
		Name: "api", Seconds: 3600, MaxCount: 100, Ban: core.Ban{After: 5, For: day, Max: 7 * day},
	})(hello)
	operator, ctx := operate.New(limiter), context.Background()

	fmt.Println(get(service, "/").StatusCode)
	if _, err := operator.Ban(ctx, "api", "ip:192.0.2.1", day); err != nil {
		panic(err)
	}
	fmt.Println(get(service, "/").StatusCode)
	bans, _, err := operator.Bans(ctx, "api", "", 100)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(bans), bans[0].Subject, bans[0].Cause)
	if _, err := operator.Unban(ctx, "api", "ip:192.0.2.1"); err != nil {
		panic(err)
	}
	fmt.Println(get(service, "/").StatusCode)
	// Output:
	// 200
	// 429
	// 1 ip:192.0.2.1 by hand
	// 200
}

// How many would a limit refuse?
func ExampleRule_dryRun() {
	wouldRefuse := 0
	limiter, _ := core.New(core.Options{OnDecision: func(_ context.Context, e core.Event) {
		d := e.Decision

		if d.Reason == core.DryRunExceeded {
			wouldRefuse++
		}
	}})
	defer limiter.Close()

	service := nethttplimit.New(limiter, core.Rule{Name: "api", Seconds: 3600, MaxCount: 3, Mode: core.DryRun})(hello)
	for range 5 {
		fmt.Println(get(service, "/").StatusCode)
	}
	fmt.Println("would refuse", wouldRefuse)
	// Output:
	// 200
	// 200
	// 200
	// 200
	// 200
	// would refuse 2
}

// Two searches an hour are fresh. The handler answers further ones with less.
func ExampleRule_soft() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	search := nethttplimit.New(limiter, core.Rule{
		Name: "search", Seconds: 3600, MaxCount: 2, Mode: core.Soft,
	})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if d, _ := core.DecisionFrom(r.Context()); d.Reason == core.SoftExceeded {
			fmt.Println("from the cache:", d.Rule, d.Limit)
			return
		}
		fmt.Println("fresh")
	}))
	for range 3 {
		get(search, "/")
	}
	// Output:
	// fresh
	// fresh
	// from the cache: search 2/h
}

// What was it that filled the window?
func ExampleRule_note() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	service := nethttplimit.New(limiter, core.Rule{
		Name:  "search",
		Limit: core.PerHour(2).Log(),
		Note:  func(r core.Request) string { return r.Path() },
	})(hello)
	for _, target := range []string{"/search/go", "/search/lua", "/search/c"} {
		fmt.Println(target, get(service, target).StatusCode)
	}
	log := core.Limit{Max: 2, Window: time.Hour, Algorithm: core.SlidingLog}
	records, _ := limiter.MustLog("search", log).Records(context.Background(), "ip:192.0.2.1")
	for _, r := range records {
		fmt.Println("counted:", r.Note)
	}
	// Output:
	// /search/go 200
	// /search/lua 200
	// /search/c 429
	// counted: /search/lua
	// counted: /search/go
}

// What does a caller get while Redis is down? Nobody listens at this address.
func ExampleRule_onStoreError() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer client.Close()
	limiter, _ := core.New(core.Options{Redis: client, Logger: slog.New(slog.DiscardHandler)})
	defer limiter.Close()

	rule := core.Rule{Name: "api", Seconds: 60, MaxCount: 4}
	for _, policy := range []core.StorePolicy{core.FailOpen, core.FailClosed, core.CountLocally(0.5)} {
		rule.OnStoreError = policy
		service := nethttplimit.New(limiter, rule)(hello)
		fmt.Print(policy, ":")
		for range 4 {
			fmt.Print(" ", get(service, "/").StatusCode)
		}
		fmt.Println()
	}
	// Output:
	// fail_open: 200 200 200 200
	// fail_closed: 503 503 503 503
	// count_locally 0.5: 200 200 429 429
}

// May a call that Redis did not answer be tried again without being charged twice?
func ExampleStoreError() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer client.Close()
	limiter, _ := core.New(core.Options{Redis: client, Logger: slog.New(slog.DiscardHandler)})
	defer limiter.Close()

	_, err := limiter.MustCounter("reply", core.PerMinute(5)).Allow(context.Background(), "user:alice")
	var failed *core.StoreError
	fmt.Println(errors.Is(err, core.ErrStore), errors.As(err, &failed))
	fmt.Println(failed.Class, failed.Class.MayHaveCharged())
	// Output:
	// true true
	// unreachable false
}

// The rules of a set are replaced while the service runs. Permits that were used before
// still count. Wrong rules change nothing.
func ExampleRuleSet() {
	limiter, _ := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	defer limiter.Close()

	set, err := limiter.RuleSet(core.Rule{Name: "api", Limit: core.PerHour(1)})
	if err != nil {
		log.Fatal(err)
	}
	service := nethttplimit.With(set.MustGuard("api"))(hello)
	fmt.Println(get(service, "/").StatusCode, get(service, "/").StatusCode)

	err = set.Replace("2", core.Rule{Name: "api", Limit: core.PerHour(2)})
	fmt.Println(get(service, "/").StatusCode, get(service, "/").StatusCode, err)

	err = set.Replace("3", core.Rule{Name: "api", Limit: core.PerHour(0)})
	fmt.Println(err)
	fmt.Println(limiter.Stats().RuleSets[0].Version)
	// Output:
	// 200 429
	// 200 429 <nil>
	// core: rule "api": Limit.Max = 0: must be 1 to 10^12
	// 2
}
