package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/storepolicy"
)

// StorePolicy says what happens to a call that Redis does not answer in time, or answers with an
// error, unless a ban or a block that the process knows refuses it. It is a comparable value:
// FailOpen, FailClosed or the result of [CountLocally]. The zero value is unset: a rule then fails
// open, and a handle such as [Counter] returns a *[StoreError].
type StorePolicy storepolicy.Policy

var (
	// FailOpen lets the call pass, uncounted.
	FailOpen = StorePolicy(storepolicy.FailOpen)
	// FailClosed refuses the call, with 503 or UNAVAILABLE.
	FailClosed = StorePolicy(storepolicy.FailClosed)
)

// CountLocally returns the policy that counts the call in this process, against a share of each
// limit: above 0, at most 1, and rounded up to a whole call. With ten processes, a share of 0.1
// lets them admit together as much as one limit would. Their refusals lead to no ban. Any other
// share is a *[RuleError] where the policy is used.
//
// A process counts from zero when Redis fails, and Redis goes on from the counters that it had. So
// in each process, an outage admits at most the share of Max more, for each window that it lasts.
// Local counts stay until their window is over, so a Redis that fails again and again does not
// start them afresh. A call that costs more than the share can hold takes all of it.
func CountLocally(share float64) StorePolicy { return StorePolicy(storepolicy.CountLocally(share)) }

// String returns the policy in its text form: fail_open, fail_closed, count_locally 0.25; or "" if
// it is unset.
func (p StorePolicy) String() string { return p.inside().String() }

// MarshalText implements encoding.TextMarshaler. It returns what String does.
func (p StorePolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It reads what String returns. The error is a
// *[RuleError], and leaves p unchanged.
func (p *StorePolicy) UnmarshalText(text []byte) error {
	read, ok := storepolicy.Parse(string(text))
	if !ok {
		return wrongArgument("", "StorePolicy", string(text), "must be fail_open, fail_closed, or count_locally with a share above 0 to 1, such as count_locally 0.25")
	}
	*p = StorePolicy(read)
	return nil
}

func (p StorePolicy) inside() storepolicy.Policy { return storepolicy.Policy(p) }

// apply sets what the engine does about a rule that Redis does not answer for. A handle without a
// policy returns the error.
func (p StorePolicy) apply(to *engine.Rule) {
	to.Required, to.LocalShare = p.inside().NeedsStore(), p.inside().Share()
}

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
	// StoreSlotMoving ("slot_moving") means that a cluster is moving the slot of the call's keys, and
	// until that is over no server can run a script with all of them: TRYAGAIN.
	StoreSlotMoving StoreErrorClass = StoreErrorClass(failure.SlotMoving)
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
