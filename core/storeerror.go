package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// stricter is the share of a counter that two rules have, either of which may not want any, 0.
func stricter(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// StoreErrorClass is the class of reasons for which Redis did not answer. Its text is stable, for
// logs and metrics.
type StoreErrorClass string

// The classes of a [StoreError].
const (
	// StoreTimeout means that a command was sent, and not answered within Timeout.
	StoreTimeout StoreErrorClass = "timeout"
	// StoreConnectionLost means that the connection broke before the reply came.
	StoreConnectionLost StoreErrorClass = "connection_lost"
	// StoreUnreachable means that no connection could be set up.
	StoreUnreachable StoreErrorClass = "unreachable"
	// StoreNoConnection means that within Timeout no connection of the client's pool became free, or
	// no earlier call was answered.
	StoreNoConnection StoreErrorClass = "no_connection"
	// StoreNotReady means that Redis cannot answer now: LOADING, READONLY, CLUSTERDOWN, BUSY, or too
	// many clients.
	StoreNotReady StoreErrorClass = "not_ready"
	// StoreBreakerOpen means that Redis was not asked, because calls just before got no answer.
	StoreBreakerOpen StoreErrorClass = "breaker_open"
	// StoreRefused means that Redis refuses until somebody changes something: OOM, NOAUTH, NOPERM,
	// CROSSSLOT and the like.
	StoreRefused StoreErrorClass = "refused_by_redis"
	// StoreForeignValue means that a key holds something that is no counter. It is left as it is.
	StoreForeignValue StoreErrorClass = "foreign_value"
	// StoreUnexpected means that the reply cannot be read.
	StoreUnexpected StoreErrorClass = "unexpected"
)

// storeErrorClasses are the classes in the order of package failure's.
var storeErrorClasses = [...]StoreErrorClass{
	failure.Timeout: StoreTimeout, failure.Lost: StoreConnectionLost, failure.Unreachable: StoreUnreachable,
	failure.NoConnection: StoreNoConnection, failure.NotReady: StoreNotReady, failure.BreakerOpen: StoreBreakerOpen,
	failure.Refused: StoreRefused, failure.Foreign: StoreForeignValue, failure.Unexpected: StoreUnexpected,
}

// MayHaveCharged reports whether a call that ended with this class may have been charged, so that
// trying again might charge it twice. That is so if a reply was lost or could not be read, or if
// Redis may have ended a script halfway because its user lacks a right. With the other classes it
// was not charged.
func (c StoreErrorClass) MayHaveCharged() bool {
	return c == StoreTimeout || c == StoreConnectionLost || c == StoreRefused || c == StoreUnexpected
}

// StoreError is the error of a handle without a [StorePolicy] if Redis did not answer. errors.Is
// finds [ErrStore] in it, and errors.As its Class.
type StoreError struct {
	Class StoreErrorClass
	Err   error // the cause
}

// Error implements error.
func (e *StoreError) Error() string { return fmt.Sprintf("%v: %v", ErrStore, e.Err) }

// Unwrap implements errors.Unwrap.
func (e *StoreError) Unwrap() []error { return []error{ErrStore, e.Err} }

// classOf is the class of a store's failure.
func classOf(err error) StoreErrorClass { return storeErrorClasses[failureOf(err)] }

func failureOf(err error) failure.Class {
	var known *failure.Error
	if errors.As(err, &known) {
		return known.Class
	}
	return failure.Unexpected
}

// storeFailed counts what got no answer from the store, and tells the log.
func (l *Limiter) storeFailed(name, policy string, err error) {
	l.failures[failureOf(err)].Add(1)
	l.complains.storeFailed(name, policy, err)
}

// directCallsPolicy is the policy of a direct call: its caller gets the error.
const directCallsPolicy = "none: a direct call"

// storeError is what a direct call returns: the store as what failed, unless the caller's own context ended.
func (l *Limiter) storeError(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	l.storeFailed(name, directCallsPolicy, err)
	return &StoreError{classOf(err), err}
}

// logStoreFailures logs the rules for which the store did not answer, once for each.
func (c *call) logStoreFailures() {
	for i := range c.limits {
		a, v := &c.limits[i], &c.verdicts[i]
		err := v.Failure()
		if err == nil || i > 0 && c.limits[i-1].rule == a.rule && c.verdicts[i-1].Failure() != nil {
			continue
		}
		c.limiter.storeFailed(a.named.name, a.rule.OnStoreError.or(FailOpen).String(), err)
	}
}
