package core_test

import (
	"context"
	"fmt"
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
