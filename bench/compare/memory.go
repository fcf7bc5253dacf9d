package main

import (
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The memory of a key is measured after its first call, and again after many calls spread over most
// of its window. All rivals are measured at the same time.
const (
	busyWindow   = 3 * time.Second
	busyCalls    = 100
	busySubjects = 20
)

// weight is the memory of a key in Redis, with its name and everything that Redis keeps for it.
type weight struct{ cold, busy float64 }

func (b *bench) memory() error {
	if err := b.server.Flush(); err != nil {
		return err
	}
	weights := make([]weight, len(rivals.OnRedis))
	var group errgroup.Group
	for i, r := range rivals.OnRedis {
		group.Go(func() (err error) {
			if weighed(r) {
				weights[i], err = b.weigh(r, harness.NewKeys(fmt.Sprintf("%03d", i), busySubjects))
			}
			return err
		})
	}
	err := group.Wait()
	for i, r := range rivals.OnRedis {
		if weighed(r) {
			b.weights[r.Name] = weights[i]
		}
	}
	return err
}

// weighed reports whether a rival writes keys that no other rival writes.
func weighed(r rivals.Redis) bool {
	switch r.Name {
	case rivals.OneKey, rivals.SameScript, rivals.Here, rivals.Rueidis, rivals.NoOverride, rivals.Overridden:
		return false
	default:
		return true
	}
}

func (b *bench) weigh(r rivals.Redis, keys harness.Keys) (w weight, err error) {
	limiter, err := r.Open(rivals.Place{Addr: b.server.Addr}, rivals.Limit{Max: 10 * busyCalls, Window: busyWindow, Permit: time.Minute})
	if err != nil {
		return w, err
	}
	defer limiter.Close()
	began := time.Now()
	for call := range busyCalls {
		time.Sleep(time.Until(began.Add(busyWindow * 8 / 10 * time.Duration(call) / busyCalls)))
		if err := callEach(limiter.Allow, keys); err != nil {
			return w, fmt.Errorf("%s: %w", r.Name, err)
		}
		if call == 0 {
			if w.cold, err = b.weighKeys(keys); err != nil {
				return w, fmt.Errorf("%s: %w", r.Name, err)
			}
		}
	}
	w.busy, err = b.weighKeys(keys)
	return w, err
}

// weighKeys returns the mean memory of the keys whose names contain these subjects.
func (b *bench) weighKeys(subjects harness.Keys) (float64, error) {
	ctx, client := background, b.server.Client
	first := subjects.At(0)
	names, err := client.Keys(ctx, "*"+first[:len(first)-harness.Digits]+"*").Result()
	if err != nil {
		return 0, err
	}
	if len(names) != subjects.Len() {
		return 0, fmt.Errorf("%d keys for %d subjects", len(names), subjects.Len())
	}
	var sum int64
	for _, name := range names {
		n, err := client.MemoryUsage(ctx, name, 0).Result()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return float64(sum) / float64(len(names)), nil
}
