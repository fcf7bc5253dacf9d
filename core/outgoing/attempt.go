package outgoing

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
)

// attempt is the wait of a call for its turn.
type attempt struct {
	*Turns
	ctx   context.Context
	key   string
	until time.Time // when it gives up

	turn   abandoned.Turn // taken or reserved; its Cost is 0 if there is none
	line   *line          // at whose head the call is, or nil
	polled int            // how often the call has asked in vain at the head of its line
	waited bool
	// unpaced reports that the store failed to reserve a turn, and that the policy needs none.
	unpaced bool
}

// sleep waits until d has passed or wake receives. If the context ends first, sleep returns its error.
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

// obstacle is the reason why a call cannot be sent now, and the longest time for which it holds.
type obstacle struct {
	by   cause
	wait time.Duration
}

// cause is what holds a call up.
type cause uint8

const (
	byTurn  cause = iota // its turn comes later
	byPause              // the server asked for a pause
	bySlot               // all slots are taken
	byProbe              // the first call after a pause is on its way
)

// isCertain reports whether the call cannot be sent before the wait is over.
func (o *obstacle) isCertain() bool { return o.by == byTurn || o.by == byPause }
