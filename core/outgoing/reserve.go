package outgoing

import (
	"time"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// lookout is the interval at which a process whose calls all wait for their turns looks for a pause.
// Otherwise it would miss a pause that ends before the first turn comes, and stay faster than the
// others.
const lookout = 500 * time.Millisecond

// reserve reserves the next turn, and waits until it comes. If the store fails, there is none: the
// policy then refuses the call, or lets it go without one.
func (a *attempt) reserve() error {
	a.leaveLine() // turns come in their own order
	op := algorithm.NewOp(algorithm.InTurn, a.turnCounter(a.key))
	op.Patience = max(0, time.Until(a.until).Microseconds())
	a.parts.Unused.Do(a.ctx, op)
	c, v := &op.Counters[0], &op.Verdicts[0]
	switch {
	case v.Ended != nil:
		return v.Ended
	case v.RetryAfter > 0:
		return a.givesUp(&obstacle{by: byTurn, wait: micros(op.Patience + v.RetryAfter)})
	case v.Err != nil:
		a.prepared.StoreFailed(v.Err)
		if c.Required {
			return storeError(v.Err)
		}
		a.unpaced = true
		return nil
	}
	a.turn = abandoned.TurnOf(c, v)
	if err := a.awaitTurn(micros(v.Wait)); err != nil {
		return a.returnTurn(err)
	}
	return nil
}

// awaitTurn waits until a turn comes that was reserved.
func (a *attempt) awaitTurn(wait time.Duration) error {
	comes := time.Now().Add(wait)
	if wait > lookout {
		if err := a.lookOut(comes.Add(-lookout)); err != nil {
			return err
		}
	}
	return a.sleep(time.Until(comes), nil)
}

// lookOut waits, and looks for pauses meanwhile, unless another call of the key does. When that stops
// waiting, the next one takes over.
func (a *attempt) lookOut(until time.Time) error {
	of := a.lookouts.join(a.key, true)
	defer a.lookouts.leave(a.key, of)
	isFirst, err := a.awaitHead(of, until)
	if !isFirst {
		return err
	}
	defer of.next()
	for time.Now().Before(until) {
		if err := a.sleep(lookout, nil); err != nil {
			return err
		}
		a.lookForPause()
	}
	return nil
}

// lookForPause asks the store for a pause, and adapts the pace to it.
func (a *attempt) lookForPause() {
	op, sent := algorithm.NewOp(algorithm.Looks, a.pause()), a.parts.Pauses.Sent()
	a.parts.Store.Do(a.ctx, op)
	a.sawPause(&op.Counters[0], &op.Verdicts[0], sent)
	if lasts := micros(op.Verdicts[0].RetryAfter); lasts > 0 {
		a.paces.entry(a.key).paused(time.Now(), lasts)
	}
}

// returnTurn gives back an unused turn when nobody waits behind it, and returns err. If err is
// nil, the call is to take another turn, so returnTurn waits until that is done, but no longer than
// the call waits for turns.
func (a *attempt) returnTurn(err error) error {
	unused := a.turn
	if unused.Cost == 0 {
		return err
	}
	a.turn = abandoned.Turn{}
	done := a.parts.Unused.Leave(unused)
	if err == nil {
		_ = a.sleep(time.Until(a.until), done) // the next step notices that the time is over
	}
	return err
}
