package outgoing

import (
	"time"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
)

// try asks for what the call still needs, and whether there is a pause, in one round trip. It returns
// the turn, or why the call cannot be sent now. Then the call holds nothing.
func (a *attempt) try() (*Turn, *obstacle, error) {
	if left := time.Until(a.unrecorded.of(a.key).ends); left > 0 {
		return nil, &obstacle{byPause, left}, a.returnTurn(nil)
	}
	q := a.question(a.turn.Cost == 0 && !a.unpaced)
	if held, err := q.ask(a); err != nil || held != nil {
		if held != nil && held.by == byPause {
			a.paces.entry(a.key).paused(time.Now(), held.wait)
		}
		return nil, held, a.returnTurn(err)
	}
	if q.turn >= 0 {
		a.turn = abandoned.TurnOf(&q.Counters[q.turn], &q.Verdicts[q.turn])
	}
	turn := &Turn{turns: a.Turns, key: a.key}
	if q.slot >= 0 {
		turn.slot = a.hold(q.charge(q.slot))
	}
	if q.isAfterPause() {
		if held, err := a.probe(turn); err != nil || held != nil {
			a.parts.Store.InBackground(turn.slot.release)
			return nil, held, a.returnTurn(err)
		}
	}
	return turn, nil, nil
}

// probe asks for the place of the only call that may be sent after a pause.
func (a *attempt) probe(turn *Turn) (*obstacle, error) {
	q := newQuestion()
	q.slot, q.slotIs = 0, byProbe
	q.add(a.counterOf(a.key, &a.prepared.Probe, a.parts.InFlight.NewHolder()))
	q.add(a.pause())
	held, err := q.ask(a)
	if err == nil && held == nil {
		turn.probe = q.charge(0)
	}
	return held, err
}
