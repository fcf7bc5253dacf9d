package outgoing

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Stats are the counts of a process since its [Turns] were made. The calls that were sent, and those
// that were not, are also in core.Stats: under the name of the rule, with the reasons allowed,
// limit_exceeded, banned for a pause, and store_fail_closed.
type Stats struct {
	// Sent is the number of calls that got a turn. GaveUp is the number of those that ended with a
	// WaitError.
	Sent, GaveUp uint64
	// Refused is the number of calls that the server refused because of a limit.
	Refused uint64
	// Pauses is the number of times that this process began a pause, or made one longer.
	Pauses uint64
	// Waited is the number of calls that had to wait, and WaitTime the sum of their waits.
	Waited   uint64
	WaitTime time.Duration
	// Waiting is the number of calls that wait now, or are just asking.
	Waiting int
}

// Stats returns the counts so far.
func (t *Turns) Stats() Stats {
	return Stats{
		Sent: t.tally.sent.Load(), GaveUp: t.tally.gaveUp.Load(), Refused: t.tally.refused.Load(), Pauses: t.tally.pauses.Load(),
		Waited: t.tally.waited.Load(), WaitTime: time.Duration(t.tally.waitTime.Load()), Waiting: int(t.tally.waiting.Load()),
	}
}

// tally holds the counts of Stats.
type tally struct {
	sent, gaveUp, refused, pauses, waited atomic.Uint64
	waitTime, waiting                     atomic.Int64
}

func (t *tally) sawWait(d time.Duration) {
	t.waited.Add(1)
	t.waitTime.Add(int64(d))
}

// count counts how a call's wait has ended. Calls that their callers gave up are not counted.
func (t *Turns) count(err error) {
	var wait *WaitError
	switch {
	case err == nil:
		t.tally.sent.Add(1)
		t.of.Count(string(core.Allowed), t.of.Source)
	case errors.As(err, &wait):
		t.tally.gaveUp.Add(1)
		reason := core.LimitExceeded
		if wait.Paused {
			reason = core.Banned
		}
		t.of.Count(string(reason), t.of.Source)
	case errors.Is(err, core.ErrStore):
		t.of.Count(string(core.StoreFailClosed), string(core.FromNobody))
	}
}
