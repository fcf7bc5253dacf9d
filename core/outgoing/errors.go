package outgoing

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// WaitError is the error of a call that was not sent, because it would have had to wait too long. It
// is this service's own: the server was not asked, and has not refused anything.
type WaitError struct {
	// Rule is the name of the rule, and Key the key of the call.
	Rule, Key string
	// Wait is how long the call would have had to wait still. It is exact for a turn. For a pause it is
	// the time until its end, behind which others may wait. For a slot it is an upper bound, or 0 if
	// none is known.
	Wait time.Duration
	// Paused reports whether the reason is that the server asked for a pause.
	Paused bool
}

// Error implements error.
func (e *WaitError) Error() string {
	if e.Paused {
		return fmt.Sprintf("outgoing: rule %q: the server asked for a pause, which lasts for another %v", e.Rule, e.Wait)
	}
	return fmt.Sprintf("outgoing: rule %q: the call would have to wait for another %v", e.Rule, e.Wait)
}

func storeError(err error) error {
	return &core.StoreError{Class: core.StoreErrorClass(failure.ClassOf(err)), Err: err}
}
