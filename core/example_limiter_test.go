package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

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
