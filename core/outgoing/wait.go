package outgoing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// longestSleep is the time after which a call asks again whether a pause is still in force,
	// because an operator may have ended it.
	longestSleep = 5 * time.Second
	// firstPoll and lastPoll bound how long the head of a line waits before it asks again for a slot.
	firstPoll, lastPoll = 5 * time.Millisecond, 250 * time.Millisecond
	// maxJitter is by how much a call waits longer than a pause, at random, so that the calls of a
	// fleet do not all come back in one moment.
	maxJitter = 250 * time.Millisecond
)

// holdUp waits until it is worth trying again. For a pause, each call waits by itself. For a slot, and
// after a pause, the calls of this process wait in line, and only the first asks.
func (a *attempt) holdUp(held *obstacle) error {
	left := time.Until(a.until)
	if left <= 0 || held.isCertain() && held.wait > left {
		return a.givesUp(held)
	}
	if held.by == byPause {
		a.leaveLine()
		wait := held.wait + rand.N(min(held.wait/10, maxJitter)+1)
		if err := a.sleep(min(wait, left, longestSleep), nil); err != nil {
			return a.timeIsUp(held, err)
		}
		return a.joinLine(true)
	}
	if a.line == nil {
		return a.joinLine(true)
	}
	a.polled++
	return a.timeIsUp(held, a.sleep(min(firstPoll<<min(a.polled, 10), lastPoll, left), a.line.freed))
}

// timeIsUp returns the error of a wait. If the context's deadline ended it, that is a WaitError, as it
// would be if MaxWait had ended the wait in the same moment.
func (a *attempt) timeIsUp(held *obstacle, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return a.givesUp(held)
	}
	return err
}

// isCertain reports whether the call cannot be sent before the wait is over.
func (o *obstacle) isCertain() bool { return o.by == byTurn || o.by == byPause }

// sleep waits, until something is received from wake at the latest. The error is the context's.
func (a *attempt) sleep(d time.Duration, wake <-chan struct{}) error {
	if d <= 0 {
		return nil
	}
	a.waited = true
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-wake:
		return nil
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

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

func (a *attempt) givesUp(held *obstacle) error {
	return &WaitError{Rule: a.rule.Name, Key: a.key, Wait: held.wait, Paused: held.by == byPause}
}
