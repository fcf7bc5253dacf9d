package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Never more than two in any hour.
func ExampleAlgorithm_slidingWindow() {
	limiter, _ := core.New(core.Options{}) // counts in this process; give it a Redis client to count for all of them
	defer limiter.Close()

	for range 3 {
		d, err := limiter.Allow(context.Background(), "reply", "user:alice", core.PerHour(2))
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
		d, _ := limiter.AllowNoted(ctx, "login", "user:alice", logins, 1, address)
		fmt.Println(address, d.Allowed)
	}
	records, _ := limiter.Records(ctx, "login", "user:alice", logins)
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
		d, _ := limiter.Allow(context.Background(), "export", "user:alice", twice)
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
		d, _ := limiter.Allow(context.Background(), "invoice", "tenant:acme", monthly)
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// 2 per month of Europe/Berlin
	// true 1
	// true 0
	// false 0
}

// Three at once, and then one every 20 minutes.
func ExampleAlgorithm_tokenBucket() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()

	for range 4 {
		d, _ := limiter.Allow(context.Background(), "mail", "user:alice", core.PerHour(3).Bucket(3))
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
		release, d, err := limiter.Hold(context.Background(), "export", "user:alice", core.InFlight(1))
		if err != nil || !d.Allowed {
			fmt.Println("not now", err)
			return
		}
		defer release()
		fmt.Println("exporting:", d.Allowed)

		second, d, _ := limiter.Hold(context.Background(), "export", "user:alice", core.InFlight(1))
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
