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

// StoreErrorClass is the kind of what kept Redis from answering. Its text is stable, for logs and metrics.
type StoreErrorClass string

// The classes.
const (
	StoreTimeout        StoreErrorClass = "timeout"          // asked, and not answered within Timeout
	StoreConnectionLost StoreErrorClass = "connection_lost"  // the connection broke while the answer was awaited
	StoreUnreachable    StoreErrorClass = "unreachable"      // no connection could be set up
	StoreNoConnection   StoreErrorClass = "no_connection"    // no connection of the client's pool, or no turn to be sent, came free within Timeout
	StoreNotReady       StoreErrorClass = "not_ready"        // Redis says that it cannot now: LOADING, READONLY, CLUSTERDOWN, BUSY, too many clients
	StoreBreakerOpen    StoreErrorClass = "breaker_open"     // not asked, because calls just before got no answer
	StoreRefused        StoreErrorClass = "refused_by_redis" // OOM, NOAUTH, NOPERM, CROSSSLOT and the like: somebody has to change something
	StoreForeignValue   StoreErrorClass = "foreign_value"    // a key of ours holds what is no counter, and is left as it is
	StoreUnexpected     StoreErrorClass = "unexpected"       // an answer that cannot be read
)

// storeErrorClasses are the classes in the order of package failure's.
var storeErrorClasses = [...]StoreErrorClass{
	failure.Timeout: StoreTimeout, failure.Lost: StoreConnectionLost, failure.Unreachable: StoreUnreachable,
	failure.NoConnection: StoreNoConnection, failure.NotReady: StoreNotReady, failure.BreakerOpen: StoreBreakerOpen,
	failure.Refused: StoreRefused, failure.Foreign: StoreForeignValue, failure.Unexpected: StoreUnexpected,
}

// MayHaveCharged says whether a call that ended so may have been charged, so that asking again might charge it twice: when an answer was
// due that did not come or could not be read, and when Redis may have ended a script halfway, for a right that our user has not. After the
// other classes it surely was not.
func (c StoreErrorClass) MayHaveCharged() bool {
	return c == StoreTimeout || c == StoreConnectionLost || c == StoreRefused || c == StoreUnexpected
}

// StoreError is the error of a handle without a [StorePolicy] when Redis did not answer. errors.Is
// finds [ErrStore] in it, and errors.As its class.
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
