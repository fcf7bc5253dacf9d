package core_test

import (
	"context"
	"fmt"

	"github.com/accesslimit/accesslimit/core"
)

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
