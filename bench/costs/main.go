// Command costs measures what a counter of each algorithm costs a Redis server: the memory of a
// key, and the time that the server's one thread spends on a decision. It takes the least of three
// rounds, because the clients share the machine. Then it compares the time of calls by counters with
// overrides to that by a plain counter. It starts its own redis-server.
//
//	go run ./costs
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"text/tabwriter"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/algorithms"
)

// row is a line of the table. Its limit is used up after maxCalls calls.
type row struct {
	name  string
	limit core.Limit
}

// maxCalls is the number of calls that fill a counter. They are made over half a window, so that a
// sliding window holds many parts.
const (
	maxCalls = 100
	window   = 8 * time.Second
)

// limits returns the limits to measure, at least one of each algorithm. Until a limit is used up,
// none of its permits comes back, and no slot is renewed.
func limits() (rows []row) {
	windows := map[core.Algorithm]time.Duration{core.CalendarWindow: time.Hour, core.Concurrency: time.Minute}
	for _, a := range algorithms.All() {
		limit := core.Limit{Max: maxCalls, Window: cmp.Or(windows[a], window), Algorithm: a}
		if a == core.TokenBucket {
			limit = core.PerMinute(1).Bucket(maxCalls)
		}
		rows = append(rows, row{a.String(), limit})
	}
	return append(rows, row{"CalendarWindow, days of a zone", core.PerCalendarDay(maxCalls, "Europe/Berlin")})
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
	for _, r := range limits() {
		c, err := s.least(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%.1f\t\n", r.name, c.cold, c.busy, c.allowed, c.refused)
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
	if err := table.Flush(); err != nil {
		return err
	}
	rows, err := s.overrides(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(table, "\ncounter with overrides\tnone is set\tone is set\t\n", rows)
	return table.Flush()
}
