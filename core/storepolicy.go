package core

import (
	"github.com/accesslimit/accesslimit/core/internal/engine"
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
// lets them admit together as much as one limit would. Bans are counted locally too. Any other
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
		return &RuleError{
			Field: "StorePolicy", Value: string(text),
			Why: "must be fail_open, fail_closed, or count_locally with a share above 0 to 1, such as count_locally 0.25",
		}
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
