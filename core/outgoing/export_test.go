package outgoing

import (
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// Stats returns the counts of these turns, which a Limiter returns among others.
func (t *Turns) Stats() core.OutgoingStats {
	of := t.prepared.Counts
	return core.OutgoingStats{
		Sent: of.Sent.Load(), GaveUp: of.GaveUp.Load(), Refused: of.Refused.Load(), Pauses: of.Pauses.Load(),
		Waited: of.Waited.Load(), WaitTime: time.Duration(of.WaitTime.Load()), Waiting: int(of.Waiting.Load()),
	}
}

// Lines returns the number of lines in which calls wait.
func Lines(t *Turns) int {
	t.lines.mu.Lock()
	defer t.lines.mu.Unlock()
	return len(t.lines.byKey)
}
