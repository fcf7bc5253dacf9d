package core

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// StorePolicy says what happens to a call that Redis does not answer in time, or answers with an
// error, unless a ban or a block that the process knows refuses it. It is a comparable value:
// FailOpen, FailClosed or the result of [CountLocally]. The zero value is unset: a rule then fails
// open, and a handle such as [Counter] returns a *[StoreError].
type StorePolicy struct {
	mode  storeMode
	share float64 // of countLocally
}

type storeMode uint8

const (
	storeUnset storeMode = iota
	failOpen
	failClosed
	countLocally
)

var (
	// FailOpen lets the call pass, uncounted.
	FailOpen = StorePolicy{mode: failOpen}
	// FailClosed refuses the call, with 503 or UNAVAILABLE.
	FailClosed = StorePolicy{mode: failClosed}
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
func CountLocally(share float64) StorePolicy { return StorePolicy{countLocally, share} }

// String returns the policy in its text form: fail_open, fail_closed, count_locally 0.25; or "" if
// it is unset.
func (p StorePolicy) String() string {
	switch p.mode {
	case failOpen:
		return "fail_open"
	case failClosed:
		return "fail_closed"
	case countLocally:
		return "count_locally " + strconv.FormatFloat(p.share, 'g', -1, 64)
	default:
		return ""
	}
}

// MarshalText implements encoding.TextMarshaler. It returns what String does.
func (p StorePolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It reads what String returns. The error is a
// *[RuleError], and leaves p unchanged.
func (p *StorePolicy) UnmarshalText(text []byte) error {
	words := strings.Fields(string(text))
	read, ok := StorePolicy{}, false
	switch {
	case len(words) == 0:
		ok = true
	case len(words) == 1 && words[0] == "fail_open":
		read, ok = FailOpen, true
	case len(words) == 1 && words[0] == "fail_closed":
		read, ok = FailClosed, true
	case len(words) == 2 && words[0] == "count_locally":
		share, err := strconv.ParseFloat(words[1], 64)
		read = CountLocally(share)
		ok = err == nil && read.check() == ""
	}
	if !ok {
		return &RuleError{
			Field: "StorePolicy", Value: string(text),
			Why: "must be fail_open, fail_closed, or count_locally with a share above 0 to 1, such as count_locally 0.25",
		}
	}
	*p = read
	return nil
}

// check returns what is wrong with the policy, or "".
func (p StorePolicy) check() string {
	if p.mode == countLocally && !(0 < p.share && p.share <= 1) { // nor NaN
		return "needs a share above 0, up to 1"
	}
	return ""
}

// checkFor returns what is wrong with the policy for a limit, or "".
func (p StorePolicy) checkFor(limit *algorithm.Limit) string {
	if p.mode != countLocally {
		return ""
	}
	if _, err := limit.Share(p.share); err != nil {
		return fmt.Sprintf("counts a share of a limit that is %v", err)
	}
	return ""
}

// or returns the policy, or another one if it is unset.
func (p StorePolicy) or(other StorePolicy) StorePolicy {
	if p.mode == storeUnset {
		return other
	}
	return p
}

// apply sets what the engine does about a rule that Redis does not answer for. A handle without a
// policy returns the error.
func (p StorePolicy) apply(to *engine.Rule) {
	to.Required, to.LocalShare = p.mode == failClosed || p.mode == storeUnset, 0
	if p.mode == countLocally {
		to.LocalShare = p.share
	}
}
