package operate_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// An operator asks who is refused most. Printing the list itself shows all of it.
func ExampleOperator_Top() {
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	replies := limiter.MustCounter("reply", core.PerHour(5))
	ctx := context.Background()
	for subject, calls := range map[string]int{"user:alice": 45, "user:bob": 7, "user:carol": 4} {
		for range calls {
			if _, err := replies.Allow(ctx, subject); err != nil {
				panic(err)
			}
		}
	}

	list, err := operate.New(limiter).Top(ctx, "reply", 10*time.Minute)
	if err != nil {
		panic(err)
	}
	for _, e := range list.Refused {
		fmt.Printf("%s was refused %d times\n", e.Subject, e.Refused)
	}
	for _, e := range list.Near {
		fmt.Printf("%s used %.0f %% of the limit\n", e.Subject, 100*e.Used)
	}
	// Output:
	// user:alice was refused 40 times
	// user:bob was refused 2 times
	// user:alice used 100 % of the limit
	// user:bob used 100 % of the limit
	// user:carol used 80 % of the limit
}
