package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// workload is a number of callers, and of subjects that they share.
type workload struct {
	name              string
	callers, subjects int
}

// overrideRounds is the number of rounds in which the counters with overrides are compared with the
// plain one, and roundTime is how long each is measured in a round.
const (
	overrideRounds = 9
	roundTime      = 200 * time.Millisecond
)

// overrides returns the table of what a call costs if its counter has overrides, as multiples of
// the time of the same call of a plain counter. Each ratio is the median over paired rounds.
func (s *server) overrides(ctx context.Context) (string, error) {
	limiter, err := core.New(core.Options{Redis: s.client, Timeout: time.Minute, Logger: discard})
	if err != nil {
		return "", err
	}
	defer limiter.Close()
	limit := core.PerHour(1_000_000_000)
	plain := limiter.MustCounter("plain", limit)
	none, some := limiter.MustCounter("none", limit).WithOverrides(), limiter.MustCounter("some", limit).WithOverrides()
	set, err := operate.New(limiter).Overrides("some")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, w := range []workload{{"1 caller", 1, 1}, {"256 callers, one subject", 256, 1}, {"256 callers, 10,000 subjects", 256, 10_000}} {
		for i := range w.subjects {
			if err := set.Set(ctx, subject(i), operate.Override{Max: limit.Max - 1}); err != nil {
				return "", err
			}
		}
		var noneSet, oneSet []float64
		for range overrideRounds {
			var took [3]float64
			for i, counter := range []core.Counter{plain, none, some} {
				if took[i], err = w.run(ctx, counter); err != nil {
					return "", err
				}
			}
			noneSet, oneSet = append(noneSet, took[1]/took[0]), append(oneSet, took[2]/took[0])
		}
		slices.Sort(noneSet)
		slices.Sort(oneSet)
		fmt.Fprintf(&b, "%s\t%.2f\t%.2f\t\n", w.name, noneSet[overrideRounds/2], oneSet[overrideRounds/2])
	}
	return b.String(), nil
}

// run returns the time of a call, in seconds.
func (w workload) run(ctx context.Context, counter core.Counter) (seconds float64, err error) {
	var (
		calls sync.WaitGroup
		mu    sync.Mutex
		done  int
	)
	start := time.Now()
	for caller := range w.callers {
		calls.Go(func() {
			own := 0
			for n := caller; time.Since(start) < roundTime; n += 257 { // a prime, so that callers spread over the subjects
				if d, failed := counter.Allow(ctx, subject(n%w.subjects)); failed != nil || !d.Allowed {
					mu.Lock()
					defer mu.Unlock()
					err = fmt.Errorf("%s: %v, %w", w.name, d, failed)
					return
				}
				own++
			}
			mu.Lock()
			defer mu.Unlock()
			done += own
		})
	}
	calls.Wait()
	return time.Since(start).Seconds() / float64(max(1, done)), err
}
