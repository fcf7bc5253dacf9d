// Package storepolicy implements core.StorePolicy: what happens to a call that Redis does not
// answer.
package storepolicy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Policy is a policy. It is a comparable value, and the zero value is unset.
type Policy struct {
	mode  mode
	share float64 // of countLocally
}

type mode uint8

const (
	unset mode = iota
	failOpen
	failClosed
	countLocally
)

// The policies without a share.
var (
	FailOpen   = Policy{mode: failOpen}
	FailClosed = Policy{mode: failClosed}
)

// CountLocally returns the policy that counts a call in this process, against a share of each limit.
func CountLocally(share float64) Policy { return Policy{countLocally, share} }

// IsSet reports whether the policy is set.
func (p Policy) IsSet() bool { return p.mode != unset }

// CountsLocally reports whether the policy is a CountLocally.
func (p Policy) CountsLocally() bool { return p.mode == countLocally }

// Share returns the share of CountLocally, and 0 for the other policies.
func (p Policy) Share() float64 { return p.share }

// NeedsStore reports whether a call cannot pass without an answer.
func (p Policy) NeedsStore() bool { return p.mode == failClosed || p.mode == unset }

// String returns the policy in its text form: fail_open, fail_closed, count_locally 0.25; or "" if
// it is unset.
func (p Policy) String() string {
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

// Parse reads what String returns.
func Parse(text string) (p Policy, ok bool) {
	switch words := strings.Fields(text); {
	case len(words) == 0:
		return Policy{}, true
	case len(words) == 1 && words[0] == "fail_open":
		return FailOpen, true
	case len(words) == 1 && words[0] == "fail_closed":
		return FailClosed, true
	case len(words) == 2 && words[0] == "count_locally":
		share, err := strconv.ParseFloat(words[1], 64)
		p = CountLocally(share)
		return p, err == nil && p.Check() == ""
	}
	return Policy{}, false
}

// Check returns what is wrong with the policy, or "".
func (p Policy) Check() string {
	if p.mode == countLocally && !(0 < p.share && p.share <= 1) { // also false for NaN
		return "needs a share above 0, up to 1"
	}
	return ""
}

// CheckFor returns what is wrong with the policy for a limit, or "".
func (p Policy) CheckFor(limit *algorithm.Limit) string {
	if p.mode != countLocally {
		return ""
	}
	if _, err := limit.Share(p.share); err != nil {
		return fmt.Sprintf("counts a share of a limit that is %v", err)
	}
	return ""
}
