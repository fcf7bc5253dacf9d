package outgoing

import (
	"context"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
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
	t.prepared.Counts.Waiting.Add(1)
	defer t.prepared.Counts.Waiting.Add(-1)
	turn, err := a.take()
	waited := time.Duration(0)
	if a.waited {
		waited = time.Since(began)
		t.prepared.Counts.Waited.Add(1)
		t.prepared.Counts.WaitTime.Add(int64(waited))
	}
	a.ended(turn, waited, err)
	return turn, err
}

// take tries and waits until the call may be sent.
func (a *attempt) take() (*Turn, error) {
	defer a.leaveLine() // also after a panic of the service's logger
	if err := a.joinLine(false); err != nil {
		return nil, a.timeIsUp(&obstacle{by: bySlot}, err)
	}
	var held *obstacle // the last one
	for {
		turn, now, err := a.try()
		switch {
		case turn != nil:
			return turn, nil
		case err == nil && now.by == byTurn:
			held, err = now, a.reserve()
		case err == nil:
			held, err = now, a.holdUp(now)
		}
		if err != nil {
			return nil, a.timeIsUp(held, err)
		}
	}
}
