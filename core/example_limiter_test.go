package core_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Never more than two in any hour.
func ExampleAlgorithm_slidingWindow() {
	// This counts in this process. With a Redis client, all processes count together.
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	for range 3 {
		d, err := limiter.MustCounter("reply", core.PerHour(2)).Allow(context.Background(), "user:alice")
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Allowed, d.Remaining, d.Reason)
	}
	// Output:
	// true 1 allowed
	// true 0 allowed
	// false 0 limit_exceeded
}

// Who made the calls that filled the window?
func ExampleAlgorithm_slidingLog() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	ctx := context.Background()

	logins := core.Limit{Max: 2, Window: time.Hour, Algorithm: core.SlidingLog}
	for _, address := range []string{"203.0.113.7", "198.51.100.4", "203.0.113.9"} {
		d, _ := limiter.MustLog("login", logins).AllowN(ctx, "user:alice", 1, address)
		fmt.Println(address, d.Allowed)
	}
	records, _ := limiter.MustLog("login", logins).Records(ctx, "user:alice")
	for _, r := range records {
		fmt.Println("counted:", r.Note)
	}
	// Output:
	// 203.0.113.7 true
	// 198.51.100.4 true
	// 203.0.113.9 false
	// counted: 198.51.100.4
	// counted: 203.0.113.7
}

// Two from the first call until an hour later, then two afresh.
func ExampleAlgorithm_fixedWindow() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	twice := core.Limit{Max: 2, Window: time.Hour, Algorithm: core.FixedWindow}
	for range 3 {
		d, _ := limiter.MustCounter("export", twice).Allow(context.Background(), "user:alice")
		fmt.Println(d.Allowed, d.ResetAfter.Round(time.Minute))
	}
	// Output:
	// true 1h0m0s
	// true 1h0m0s
	// false 1h0m0s
}

// Two in each calendar month, as it begins in Berlin.
func ExampleAlgorithm_calendarWindow() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	monthly := core.PerCalendarMonth(2, "Europe/Berlin")
	fmt.Println(monthly)
	for range 3 {
		d, _ := limiter.MustCounter("invoice", monthly).Allow(context.Background(), "tenant:acme")
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// 2/month@Europe/Berlin
	// true 1
	// true 0
	// false 0
}

// Three at once, and then one every 20 minutes.
func ExampleAlgorithm_tokenBucket() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	for range 4 {
		d, _ := limiter.MustCounter("mail", core.PerHour(3).Bucket(3)).Allow(context.Background(), "user:alice")
		fmt.Println(d.Allowed, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 0s
	// true 0s
	// true 0s
	// false 20m0s
}

// One export at once for each user; the slot is renewed until it is released.
func ExampleAlgorithm_concurrency() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	export := func() {
		release, d, err := limiter.MustSlots("export", 1).Hold(context.Background(), "user:alice")
		if err != nil || !d.Allowed {
			fmt.Println("not now", err)
			return
		}
		defer release()
		fmt.Println("exporting:", d.Allowed)

		second, d, _ := limiter.MustSlots("export", 1).Hold(context.Background(), "user:alice")
		defer second()
		fmt.Println("another beside it:", d.Allowed)
	}
	export()
	export()
	// Output:
	// exporting: true
	// another beside it: false
	// exporting: true
	// another beside it: false
}

// A batch that is larger than the bucket goes at once, and who comes next waits until it is paid
// for.
func ExamplePacer_Acquire() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	ctx := context.Background()
	sms := core.PerHour(60).Bucket(10)

	d, err := limiter.MustPacer("sms", sms).Acquire(ctx, "tenant:acme", 100)
	fmt.Println(d.Allowed, d.Wait, err)

	d, err = limiter.MustPacer("sms", sms).Acquire(ctx, "tenant:acme", 1) // waits for a minute at most
	fmt.Println(d.Allowed, d.RetryAfter.Round(time.Minute), err)

	_, err = limiter.MustPacer("sms", sms).Acquire(ctx, "tenant:acme", 1000)
	fmt.Println(errors.Is(err, core.ErrCostExceedsLimit))
	// Output:
	// true 0s <nil>
	// false 1h30m0s <nil>
	// true
}

// A turn for later, and back when it is not needed.
func ExamplePacer_Reserve() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	ctx := context.Background()
	calls := core.PerHour(6).Bucket(1)

	for range 2 {
		d, _ := limiter.MustPacer("crawl", calls).Reserve(ctx, "site:example.org", 1)
		fmt.Println("in", d.Wait.Round(time.Minute))
	}
	d, _ := limiter.MustPacer("crawl", calls).Reserve(ctx, "site:example.org", 1)
	fmt.Println("in", d.Wait.Round(time.Minute), "- no, thanks:", limiter.Refund(ctx, d, 1))
	d, _ = limiter.MustPacer("crawl", calls).Reserve(ctx, "site:example.org", 1)
	fmt.Println("in", d.Wait.Round(time.Minute))
	// Output:
	// in 0s
	// in 10m0s
	// in 20m0s - no, thanks: <nil>
	// in 20m0s
}

// Ten are charged, three were needed.
func ExampleLimiter_Refund() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	ctx := context.Background()

	d, err := limiter.MustCounter("rows", core.PerHour(10)).AllowN(ctx, "user:alice", 10)
	if err != nil || !d.Allowed {
		return
	}
	if err := limiter.Refund(ctx, d, 7); err != nil {
		panic(err)
	}
	left, _ := peek(limiter, ctx, "rows", "user:alice", core.PerHour(10))
	fmt.Println(left.Remaining, "left")
	fmt.Println(limiter.Refund(ctx, d, 4))
	// Output:
	// 7 left
	// core: rule "rows": n = 4: is more than is left of the charge: 7 of 10 were refunded before
}

// A language model is asked with at most 4,000 tokens, and tells in the end how many it has used.
func ExampleCounter_Open() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	ctx := context.Background()
	tokens := limiter.MustCounter("tokens", core.PerHour(10_000), core.PerCalendarMonth(1_000_000, "UTC"))

	ask := func(used int) {
		bill, d, err := tokens.Open(ctx, "tenant:acme", 4000)
		if err != nil || !d.Allowed {
			fmt.Println("refused:", err)
			return
		}
		if used == 0 { // the model was not reached
			fmt.Println("cancelled:", bill.Cancel(ctx))
			return
		}
		err = bill.Settle(ctx, used)
		d, _ = tokens.Peek(ctx, "tenant:acme")
		fmt.Println(used, "used:", err, d.Remaining, "left")
	}
	for _, used := range []int{1500, 0, 5000, 100} {
		ask(used)
	}
	// Output:
	// 1500 used: <nil> 8500 left
	// cancelled: <nil>
	// 5000 used: <nil> 3500 left
	// refused: <nil>
}

// This publishes the decisions for expvar (at /debug/vars) and in the text form of Prometheus: the
// calls of each rule, and those that the rule decided.
func ExampleLimiter_Stats() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	for range 3 {
		_, _ = limiter.MustCounter("reply", core.PerHour(2)).Allow(context.Background(), "user:alice")
	}

	expvar.Publish("accesslimit", expvar.Func(func() any { return limiter.Stats() }))

	for _, d := range limiter.Stats().Decisions {
		labels := fmt.Sprintf("{rule=%q,reason=%q,source=%q}", d.Rule, d.Reason, d.Source)
		fmt.Printf("accesslimit_decisions_total%s %d\n", labels, d.Count)
		fmt.Printf("accesslimit_calls_total%s %d\n", labels, d.Bound)
	}
	// Output:
	// accesslimit_decisions_total{rule="reply",reason="allowed",source="memory"} 2
	// accesslimit_calls_total{rule="reply",reason="allowed",source="memory"} 2
	// accesslimit_decisions_total{rule="reply",reason="limit_exceeded",source="memory"} 1
	// accesslimit_calls_total{rule="reply",reason="limit_exceeded",source="memory"} 1
}

// A service learns when a caller has used 80 % of a limit, and all of it.
func ExampleThreshold() {
	limiter, err := core.New(core.Options{
		Logger: slog.New(slog.DiscardHandler),
		OnThreshold: func(_ context.Context, t core.Threshold) {
			fmt.Printf("%s has used %d of %v (%.0f %%)\n", t.Key, t.Used, t.Limit, 100*t.Fraction)
		},
	})
	if err != nil {
		panic(err)
	}
	replies := limiter.MustCheck(core.Rule{Name: "reply", Limit: core.PerHour(10), Warn: []float64{0.8, 1}})
	for range 12 {
		replies.Allow(newView("POST", "/reply"), "user:alice")
	}
	limiter.Close() // waits for the reports
	// Output:
	// user:alice has used 8 of 10/h (80 %)
	// user:alice has used 10 of 10/h (100 %)
}
