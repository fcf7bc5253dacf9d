package outgoing

import (
	"context"
	"errors"
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
			return err
		}
		return a.joinLine(true)
	}
	if a.line == nil {
		return a.joinLine(true)
	}
	a.polled++
	return a.sleep(min(firstPoll<<min(a.polled, 10), lastPoll, left), a.line.freed)
}

// timeIsUp returns the error of a call that was held up, unless held is nil. If the context's deadline
// ended it, that is a WaitError, as it would be if MaxWait had ended the wait in the same moment.
func (a *attempt) timeIsUp(held *obstacle, err error) error {
	if held != nil && errors.Is(err, context.DeadlineExceeded) {
		return a.givesUp(held)
	}
	return err
}

func (a *attempt) givesUp(held *obstacle) error {
	return &WaitError{Rule: a.rule.Name, Key: a.key, Wait: held.wait, Paused: held.by == byPause}
}

// joinLine waits in the line of the call's key until the call is the first. If there is no line, it
// begins one, or does nothing.
func (a *attempt) joinLine(begin bool) error {
	of := a.lines.join(a.key, begin)
	if of == nil {
		return nil
	}
	isFirst, err := a.awaitHead(of, a.until)
	if isFirst {
		a.line, a.polled = of, 0
		return nil
	}
	a.lines.leave(a.key, of)
	if err == nil {
		return a.givesUp(&obstacle{by: bySlot})
	}
	return err
}

// awaitHead waits until the call is the first in a line, and reports whether it is before the time is
// over. If the context ends first, it returns its error.
func (a *attempt) awaitHead(of *line, until time.Time) (isFirst bool, err error) {
	select {
	case of.head <- struct{}{}:
		return true, nil
	default:
	}
	a.waited = true
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case of.head <- struct{}{}:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-a.ctx.Done():
		return false, a.ctx.Err()
	}
}

// leaveLine lets the next call be the first.
func (a *attempt) leaveLine() {
	if a.line != nil {
		a.line.next()
		a.lines.leave(a.key, a.line)
		a.line = nil
	}
}
