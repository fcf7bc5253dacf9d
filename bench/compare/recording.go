package main

import (
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// recordCalls has a rival make calls through a proxy and returns the scripts that it sent. Its very
// first call is left out, because it may bring the script's text.
func (b *bench) recordCalls(rival string, limit rivals.Limit, do func(harness.AllowFunc) error) ([][]string, error) {
	recorder, err := harness.NewRecorder(b.server.Addrs()[0])
	if err != nil {
		return nil, err
	}
	defer recorder.Close()
	limiter, err := rivals.Find(rival).Open(rivals.Place{Addrs: []string{recorder.Addr()}}, limit)
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	if err := askOnce(limiter.Allow, harness.NewKeys("not", 1).At(0)); err != nil {
		return nil, err
	}
	calls, err := recorder.Record(func() error { return do(limiter.Allow) })
	if err == nil && len(calls) == 0 {
		err = fmt.Errorf("%s sent no script", rival)
	}
	return calls, err
}

// askOnce calls a key, whatever the answer is.
func askOnce(allow harness.AllowFunc, subject string) error {
	_, err := patiently(allow, subject)
	return err
}

// askEach calls every key once, whatever the answers are.
func askEach(allow harness.AllowFunc, keys harness.Keys) error {
	var group errgroup.Group
	for g := range warmers {
		group.Go(func() error {
			for i := g; i < keys.Len(); i += warmers {
				if err := askOnce(allow, keys.At(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
