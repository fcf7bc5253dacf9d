package main

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// All algorithms have the same limit. It is large enough for smooth areas: a bar of 100 ms has ten
// calls or more.
const (
	maxCalls = 200
	window   = 2 * time.Second
)

// algorithm is one picture. To add one, extend the list below.
type algorithm struct {
	file    string // of the picture, without .svg
	title   string
	promise string
	counted string // the calls that the lower graph compares with maxCalls
	decide  decideFunc
}

// decideFunc decides one call, which takes the given time if it is admitted. It reports whether the
// call was admitted and how long it counts: for the window, or, if calls in flight are counted, as
// long as it takes. It returns at once; time.AfterFunc ends the call.
type decideFunc func(ctx context.Context, subject string, takes time.Duration) (
	admitted bool, counts time.Duration, err error)

func algorithms(limiter *core.Limiter) []algorithm {
	return []algorithm{
		{
			"sliding_window", "SlidingWindow", "never more than 200 calls in any 2 s; a used permit comes back at most 1/32 of the 2 s late",
			"in the last 2 s", allow(limiter, core.SlidingWindow),
		},
		{
			"sliding_log", "SlidingLog", "never more than 200 calls in any 2 s; a used permit comes back exactly 2 s later",
			"in the last 2 s", allow(limiter, core.SlidingLog),
		},
		{
			"fixed_window", "FixedWindow",
			"200 calls from the first one until 2 s later, then afresh; up to 400 in 2 s around a boundary",
			"in the last 2 s", allow(limiter, core.FixedWindow),
		},
		{
			"calendar_window", "CalendarWindow", "200 calls in each 2 s of the clock; up to 400 in 2 s around a boundary",
			"in the last 2 s", allow(limiter, core.CalendarWindow),
		},
		{
			"token_bucket", "TokenBucket", "a bucket of 200 that starts full and refills with 100 a second, continuously",
			"in the last 2 s", allow(limiter, core.TokenBucket),
		},
		{
			"concurrency", "Concurrency", "never more than 200 calls in flight, each of which takes one to three seconds",
			"in flight", hold(limiter),
		},
	}
}

// hold returns a function that occupies a slot for as long as the call takes.
func hold(limiter *core.Limiter) decideFunc {
	slots := limiter.MustSlots("Concurrency", maxCalls)
	return func(ctx context.Context, subject string, takes time.Duration) (bool, time.Duration, error) {
		release, d, err := slots.Hold(ctx, subject)
		time.AfterFunc(takes, release)
		return d.Allowed, takes, err
	}
}

// allow returns a function for a limiter that counts calls in a window.
func allow(limiter *core.Limiter, kind core.Algorithm) decideFunc {
	limit := core.Limit{Max: maxCalls, Window: window, Algorithm: kind}
	counter := limiter.MustCounter(kind.String(), limit)
	return func(ctx context.Context, subject string, _ time.Duration) (bool, time.Duration, error) {
		d, err := counter.Allow(ctx, subject)
		return d.Allowed, limit.Window, err
	}
}
