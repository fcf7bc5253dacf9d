package main

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
)

// warmers is how many goroutines make the first call on every key.
const warmers = 128

// callEach calls every key once. All calls must be admitted.
func callEach(allow harness.AllowFunc, keys harness.Keys) error {
	return forEachKey(keys, func(subject string) error {
		answer, err := patiently(allow, subject)
		if err == nil && !answer.Allowed {
			err = errors.New("the first call on a key was refused")
		}
		return err
	})
}

// forEachKey runs call for every key, from several goroutines.
func forEachKey(keys harness.Keys, call func(subject string) error) error {
	var group errgroup.Group
	for g := range min(warmers, keys.Len()) {
		group.Go(func() error {
			for i := g; i < keys.Len(); i += warmers {
				if err := call(keys.At(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
