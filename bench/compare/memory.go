package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The memory of a subject is measured after its first call, and again after many calls spread over
// most of its window. All rivals are measured at the same time.
const (
	manyCalls    = 100
	busySubjects = 20
)

// weight is the memory of a subject's keys in Redis, with their names and everything that Redis
// keeps for them. Only rivals with bills keep several keys for a subject: each bill has a record.
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
	limiter, err := r.Open(rivals.Place{Addr: b.server.Addr}, rivals.Limit{Max: 10 * manyCalls, Window: b.busyWindow, Permit: time.Minute})
	if err != nil {
		return w, err
	}
	defer limiter.Close()
	began := time.Now()
	for call := range b.busyCalls {
		time.Sleep(time.Until(began.Add(b.busyFor * time.Duration(call) / time.Duration(b.busyCalls))))
		if err := callEach(limiter.Allow, keys); err != nil {
			return w, fmt.Errorf("%s: %w", r.Name, err)
		}
		if call == 0 {
			if w.cold, err = b.weighEach(keys); err != nil {
				return w, fmt.Errorf("%s: %w", r.Name, err)
			}
		}
	}
	w.busy, err = b.weighEach(keys)
	return w, err
}

// weighEach returns the mean memory of the keys of these subjects.
func (b *bench) weighEach(subjects harness.Keys) (mean float64, err error) {
	var sum int64
	for i := range subjects.Len() {
		memory, err := b.weighKeys(subjects.At(i))
		if err != nil {
			return 0, err
		}
		sum += memory
	}
	return float64(sum) / float64(subjects.Len()), nil
}

// weighKeys returns the memory of the keys whose names contain a subject. There must be some.
func (b *bench) weighKeys(subject string) (sum int64, err error) {
	ctx, client := background, b.server.Client
	names, err := client.Keys(ctx, "*"+subject+"*").Result()
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no key of %s", subject)
	}
	for _, name := range names {
		memory, failed := client.MemoryUsage(ctx, name, 0).Result()
		sum, err = sum+memory, errors.Join(err, failed)
	}
	return sum, err
}
