package outgoing

import (
	"context"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Take waits until a call with a key may be sent. It is for calls that are not HTTP: a Transport does
// all of this. The caller must report what the server said by [Turn.Answered], and end the call by
// [Turn.Release].
//
// If the wait would be longer than MaxWait, or than the context's deadline allows, the error is a
// *[WaitError] at once. Nothing was charged then, or it was given back. If Redis does not answer and
// the policy is core.FailClosed, the error is a *core.StoreError. If the context ends, it is the
// context's error. A key that is "" is a *core.RuleError.
func (t *Turns) Take(ctx context.Context, key string) (*Turn, error) {
	if key == "" {
		return nil, &core.RuleError{Rule: t.rule.Name, Field: "key", Value: key, Why: "must say whose calls are counted"}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := time.Now()
	a := &attempt{Turns: t, ctx: ctx, key: strings.Clone(key), until: began.Add(t.rule.MaxWait)}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(a.until) {
		a.until = deadline
	}
	t.of.Waits.Waiting.Add(1)
	defer t.of.Waits.Waiting.Add(-1)
	turn, err := a.take()
	a.leaveLine()
	if a.waited {
		t.of.Waits.Waited.Add(1)
		t.of.Waits.WaitTime.Add(int64(time.Since(began)))
	}
	t.count(err)
	return turn, err
}

// attempt is the wait of a call for its turn.
type attempt struct {
	*Turns
	ctx   context.Context
	key   string
	until time.Time // when it gives up

	turn   algorithm.Charge // taken or reserved; its Cost is 0 if there is none
	line   *line            // at whose head the call is, or nil
	polled int              // how often the call has asked in vain at the head of its line
	waited bool
	// unpaced reports that the store failed to reserve a turn, and that the policy needs none.
	unpaced bool
}

// take tries and waits until the call may be sent.
func (a *attempt) take() (*Turn, error) {
	if err := a.joinLine(false); err != nil {
		return nil, err
	}
	for {
		turn, held, err := a.try()
		switch {
		case err != nil || turn != nil:
			return turn, err
		case held.by == byTurn:
			err = a.reserve()
		default:
			err = a.holdUp(held)
		}
		if err != nil {
			return nil, err
		}
	}
}

// reserve reserves the next turn, and waits until it comes. If the store fails, there is none, and the
// policy says whether the call needs one.
func (a *attempt) reserve() error {
	a.leaveLine() // turns come in their own order
	c, patience := a.counterOf(a.key, a.paces.of(a.key, a.of.Counted.Limits[0]), ""), max(0, time.Until(a.until).Microseconds())
	v := a.parts.Store.Reserve(a.ctx, &c, patience)
	switch {
	case v.Ended != nil:
		return v.Ended
	case v.RetryAfter > 0:
		return a.givesUp(&obstacle{by: byTurn, wait: micros(patience + v.RetryAfter)})
	case v.Err != nil:
		a.of.StoreFailed(v.Err)
		if c.Required {
			return storeError(v.Err)
		}
		a.unpaced = true
		return nil
	}
	a.turn = c.Charged(&v)
	if err := a.sleep(micros(v.Wait), nil); err != nil {
		return a.returnTurn(err)
	}
	return nil
}

// returnTurn gives back a turn that is not used, as far as nobody waits behind it. A call that is to
// take another turn waits until that is done, but no longer than it waits for turns. If err says that
// the call is over, it does not wait. returnTurn returns err.
func (a *attempt) returnTurn(err error) error {
	unused := a.turn
	if unused.Cost == 0 {
		return err
	}
	a.turn = algorithm.Charge{}
	done := make(chan struct{})
	a.parts.Store.InBackground(func() {
		defer close(done)
		_ = a.parts.Store.GiveBack(context.Background(), []algorithm.Charge{unused})
	})
	if err == nil {
		_ = a.sleep(time.Until(a.until), done) // the next step notices that the time is over
	}
	return err
}
