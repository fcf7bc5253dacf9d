package core_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/accesslimit/accesslimit/core"
)

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
