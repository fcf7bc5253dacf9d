package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
)

// StoreErrorClass is the class of reasons for which Redis did not answer. Its text is stable, for
// logs and metrics.
type StoreErrorClass string

// The classes of a [StoreError].
const (
	// StoreTimeout ("timeout") means that a command was sent, and not answered within Timeout.
	StoreTimeout StoreErrorClass = StoreErrorClass(failure.Timeout)
	// StoreConnectionLost ("connection_lost") means that the connection broke before the reply
	// came.
	StoreConnectionLost StoreErrorClass = StoreErrorClass(failure.Lost)
	// StoreUnreachable ("unreachable") means that no connection could be set up.
	StoreUnreachable StoreErrorClass = StoreErrorClass(failure.Unreachable)
	// StoreNoConnection ("no_connection") means that within Timeout no connection of the client's
	// pool became free, or no earlier call was answered.
	StoreNoConnection StoreErrorClass = StoreErrorClass(failure.NoConnection)
	// StoreNotReady ("not_ready") means that Redis cannot answer now: LOADING, READONLY,
	// CLUSTERDOWN, BUSY, or too many clients.
	StoreNotReady StoreErrorClass = StoreErrorClass(failure.NotReady)
	// StoreBreakerOpen ("breaker_open") means that Redis was not asked, because calls just before
	// got no answer.
	StoreBreakerOpen StoreErrorClass = StoreErrorClass(failure.BreakerOpen)
	// StoreRefused ("refused_by_redis") means that Redis refuses until somebody changes something:
	// OOM, NOAUTH, NOPERM, CROSSSLOT and the like.
	StoreRefused StoreErrorClass = StoreErrorClass(failure.Refused)
	// StoreForeignValue ("foreign_value") means that a key holds something that is no counter. It
	// is left as it is.
	StoreForeignValue StoreErrorClass = StoreErrorClass(failure.Foreign)
	// StoreUnexpected ("unexpected") means that the reply cannot be read. The client may have
	// panicked at it.
	StoreUnexpected StoreErrorClass = StoreErrorClass(failure.Unexpected)
)

// MayHaveCharged reports whether a call that ended with this class may have been charged, so that
// trying again might charge it twice. That is so if a reply was lost or could not be read, or if
// Redis may have ended a script halfway because its user lacks a right. With the other classes it
// was not charged.
func (c StoreErrorClass) MayHaveCharged() bool { return failure.Class(c).MayHaveCharged() }

// StoreError is the error of a handle without a [StorePolicy] if Redis did not answer, or answered
// with an error. errors.Is finds [ErrStore] in it, and errors.As its Class.
type StoreError struct {
	Class StoreErrorClass
	Err   error // the cause
}

// Error implements error.
func (e *StoreError) Error() string {
	if failure.Class(e.Class).Answered() {
		return fmt.Sprintf("core: the store answered with an error: %v", e.Err)
	}
	return fmt.Sprintf("core: the store did not answer: %v", e.Err)
}

// Unwrap implements errors.Unwrap.
func (e *StoreError) Unwrap() []error { return []error{ErrStore, e.Err} }

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

// stats returns the counts by class, or nil if there are none.
func (f *storeFailures) stats() (counts map[StoreErrorClass]uint64) {
	f.Each(func(class failure.Class, count uint64) {
		if counts == nil {
			counts = make(map[StoreErrorClass]uint64)
		}
		counts[StoreErrorClass(class)] = count
	})
	return counts
}
