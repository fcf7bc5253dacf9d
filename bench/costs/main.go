// Command costs measures what a counter of each algorithm costs a Redis server: the memory of a
// key, and the time that the server's one thread spends on a decision. It takes the least of three
// rounds, because the clients share the machine. It starts its own redis-server.
//
//	go run ./costs
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"text/tabwriter"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// algorithm is a line of the table. Its limit is used up after busy calls.
type algorithm struct {
	name  string
	limit core.Limit
}

// maxCalls is the number of calls that fill a counter. They are made over half a window, so that a
// sliding window holds many parts.
const (
	maxCalls = 100
	window   = 8 * time.Second
)

// algorithms returns the algorithms to measure. Until a limit is used up, none of its permits comes
// back and no slot is renewed.
func algorithms() []algorithm {
	counted := func(kind core.Algorithm, window time.Duration) core.Limit {
		return core.Limit{Max: maxCalls, Window: window, Algorithm: kind}
	}
	return []algorithm{
		{"SlidingWindow", counted(core.SlidingWindow, window)},
		{"SlidingLog", counted(core.SlidingLog, window)},
		{"FixedWindow", counted(core.FixedWindow, window)},
		{"CalendarWindow", counted(core.CalendarWindow, time.Hour)},
		{"CalendarWindow, days of a zone", core.PerCalendarDay(maxCalls, "Europe/Berlin")},
		{"TokenBucket", core.PerMinute(1).Bucket(maxCalls)},
		{"Concurrency", counted(core.Concurrency, time.Minute)},
	}
}

func main() {
	if err := measure(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func measure(ctx context.Context) error {
	s, err := startServer()
	if err != nil {
		return err
	}
	defer s.stop()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "algorithm\tbytes after 1 call\tbytes after 100\tµs allowed\tµs refused\t")
	for _, a := range algorithms() {
		c, err := s.least(ctx, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%.1f\t\n", a.name, c.cold, c.busy, c.allowed, c.refused)
	}
	nothing, err := s.nothing(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(table, "EVALSHA of return 0\t\t\t%.1f\t\t\n", nothing)
	refund, err := s.refund(ctx, maxEntries)
	if err != nil {
		return err
	}
	fmt.Fprintf(table, "refund from the middle of a full SlidingLog\t\t\t%.1f\t\t\n", refund)
	return table.Flush()
}
