package core

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
)

// storeFailures counts and logs that the store did not answer.
type storeFailures struct {
	*failure.Counts
	log *operatorlog.Log
}

// failed counts and logs that the store did not answer a call of a rule or handle with this policy.
func (f *storeFailures) failed(name, policy string, err error) {
	f.Add(err)
	f.log.StoreFailed(name, policy, err)
}

// handlePolicy is the policy in the log for a handle without a StorePolicy.
const handlePolicy = "none: the caller gets the error"

// errorOf returns the error of a handle's call: a *StoreError, unless the caller's own context ended.
func (f *storeFailures) errorOf(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	f.failed(name, handlePolicy, err)
	return &StoreError{StoreErrorClass(failure.ClassOf(err)), err}
}

// stats returns the counts, in order of their class.
func (f *storeFailures) stats() (counts []StoreErrorCount) {
	f.Each(func(class failure.Class, count uint64) {
		counts = append(counts, StoreErrorCount{StoreErrorClass(class), count})
	})
	slices.SortFunc(counts, func(a, b StoreErrorCount) int { return cmp.Compare(a.Class, b.Class) })
	return counts
}
