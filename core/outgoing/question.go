package outgoing

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// question is what a call asks of the store. Its pause is the last counter. It is no engine.Call: there
// the longest wait binds. Here a pause goes before a slot, and
// a slot before a turn, because each is waited for in another way. Also, a turn that was reserved leaves
// the rule with fewer counters.
type question struct {
	*algorithm.Op
	turn, slot int // indexes, or -1
	slotIs     cause
}

func newQuestion() question {
	return question{Op: algorithm.NewOp(algorithm.AllOrNone), turn: -1, slot: -1, slotIs: bySlot}
}

func (a *attempt) question(turn bool) question {
	q := newQuestion()
	if turn {
		q.turn = q.add(a.turnCounter(a.key))
	}
	if limits := a.prepared.Counted.Limits; len(limits) > 1 {
		q.slot = q.add(a.counterOf(a.key, limits[1], a.parts.InFlight.NewHolder()))
	}
	q.add(a.pause())
	return q
}

func (q *question) add(c algorithm.Counter) (at int) {
	q.Counters, q.Verdicts = append(q.Counters, c), append(q.Verdicts, algorithm.Verdict{})
	return len(q.Counters) - 1
}

// pause returns the counter of the key's pauses.
func (a *attempt) pause() algorithm.Counter {
	c := a.counterOf(a.key, &a.prepared.Pause, "")
	c.Cost = 0
	return c
}

// sawPause notes the store's answer about a pause, which holds while the store does not answer.
func (a *attempt) sawPause(c *algorithm.Counter, v *algorithm.Verdict, sent int64) {
	a.parts.Pauses.Saw(c.Key, a.rule.Name, a.key, v, sent)
}

// ask takes all or nothing. It returns what holds the call up, if anything does.
func (q *question) ask(a *attempt) (*obstacle, error) {
	sent := a.parts.Pauses.Sent()
	decide := func() { a.parts.Store.Do(context.WithoutCancel(a.ctx), q.Op) }
	if err := a.parts.Unused.Ask(a.ctx, decide, func() { q.undo(a) }); err != nil {
		return nil, err
	}
	a.sawPause(&q.Counters[len(q.Counters)-1], q.paused(), sent)
	for i := range q.Verdicts {
		if q.Verdicts[i].Failure() != nil {
			if err := q.failed(a, i); err != nil {
				return nil, err
			}
			break
		}
	}
	return q.obstacle(), nil
}

// failed reports that the store did not answer for the counter at i. The error says why the call
// cannot be sent, if the policy is FailClosed.
func (q *question) failed(a *attempt, i int) error {
	v := &q.Verdicts[i]
	a.prepared.StoreFailed(v.Failure())
	if q.paused().RetryAfter > 0 || !q.Counters[i].Required {
		return nil
	}
	return storeError(v.Failure())
}

// obstacle returns what holds the call up, or nil.
func (q *question) obstacle() *obstacle {
	switch {
	case q.paused().RetryAfter > 0:
		return &obstacle{byPause, micros(q.paused().RetryAfter)}
	case q.slot >= 0 && q.Verdicts[q.slot].RetryAfter > 0:
		return &obstacle{q.slotIs, micros(q.Verdicts[q.slot].RetryAfter)}
	case q.turn >= 0 && q.Verdicts[q.turn].RetryAfter > 0:
		return &obstacle{byTurn, micros(q.Verdicts[q.turn].RetryAfter)}
	}
	return nil
}

func (q *question) paused() *algorithm.Verdict { return &q.Verdicts[len(q.Verdicts)-1] }

// isAfterPause reports whether a refusal is remembered, and no call was answered since its pause.
func (q *question) isAfterPause() bool {
	v := q.paused()
	return v.Err == nil && v.RetryAfter == 0 && v.ResetAfter > 0
}

func (q *question) charge(i int) algorithm.Charge { return q.Counters[i].Charged(&q.Verdicts[i]) }

// undo gives back what was taken for a caller who has left.
func (q *question) undo(a *attempt) {
	if q.slot >= 0 {
		a.hold(q.charge(q.slot)).release()
	}
	if q.turn >= 0 {
		a.parts.Unused.Leave(abandoned.TurnOf(&q.Counters[q.turn], &q.Verdicts[q.turn]))
	}
}
