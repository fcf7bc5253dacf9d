package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// call is the result of an arrival. An admitted call counts from the answer until its span after
// the request. It certainly counted for that time, so a delayed goroutine never makes a limit look
// broken.
type call struct {
	requested   time.Duration // since the run began, like from and until
	admitted    bool
	from, until time.Duration
}

// run makes all clients' calls to all algorithms side by side, in real time, and returns them as
// [algorithm][client].
func run(ctx context.Context, start time.Time, algorithms []algorithm, clients []client) ([][][]call, error) {
	group, ctx := errgroup.WithContext(ctx)
	results := make([][][]call, len(algorithms))
	for i, a := range algorithms {
		results[i] = make([][]call, len(clients))
		for j, c := range clients {
			group.Go(func() (err error) {
				results[i][j], err = play(ctx, start, c, a.decide)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", a.title, c.name, err)
				}
				return nil
			})
		}
	}
	return results, group.Wait()
}

// nextBoundary returns the next multiple of the window. A run that starts there has its first
// clock-aligned window at the left edge of the picture.
func nextBoundary(now time.Time) time.Time {
	return now.Add(window - time.Duration(now.UnixNano()%int64(window)))
}

// play makes one client's calls to one algorithm, each at its time.
func play(ctx context.Context, start time.Time, c client, decide decideFunc) ([]call, error) {
	calls := make([]call, 0, len(c.arrivals))
	for _, next := range c.arrivals {
		time.Sleep(time.Until(start.Add(next.at)))
		requested := time.Since(start)
		admitted, counts, err := decide(ctx, c.name, next.takes)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call{
			requested: requested, admitted: admitted, from: time.Since(start), until: requested + counts,
		})
	}
	return calls, nil
}
