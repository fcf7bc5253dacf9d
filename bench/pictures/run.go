package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// call is what became of an arrival. An admitted one counts from when it was answered until its span after it was asked: this
// is the shortest time that is certain, so that a goroutine that was kept waiting never looks like a broken promise.
type call struct {
	asked       time.Duration // since the run began, as from and until
	admitted    bool
	from, until time.Duration
}

// run lets all clients call all algorithms side by side, in real time, and returns their calls: [algorithm][client].
func run(ctx context.Context, start time.Time, algorithms []algorithm, clients []client) ([][][]call, error) {
	group, ctx := errgroup.WithContext(ctx)
	results := make([][][]call, len(algorithms))
	for i, a := range algorithms {
		results[i] = make([][]call, len(clients))
		for j, c := range clients {
			group.Go(func() (err error) {
				results[i][j], err = play(ctx, start, c, a.ask)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", a.title, c.name, err)
				}
				return nil
			})
		}
	}
	return results, group.Wait()
}

// nextBoundary is when the clock is a multiple of the window: so windows that are aligned to the clock begin with the picture.
func nextBoundary(now time.Time) time.Time {
	return now.Add(window - time.Duration(now.UnixNano()%int64(window)))
}

// play makes one client's calls to one algorithm, each when it is due.
func play(ctx context.Context, start time.Time, c client, ask askFunc) ([]call, error) {
	calls := make([]call, 0, len(c.arrivals))
	for _, next := range c.arrivals {
		time.Sleep(time.Until(start.Add(next.at)))
		asked := time.Since(start)
		admitted, counts, err := ask(ctx, c.name, next.takes)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call{asked: asked, admitted: admitted, from: time.Since(start), until: asked + counts})
	}
	return calls, nil
}
