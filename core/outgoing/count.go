package outgoing

import (
	"errors"

	"github.com/accesslimit/accesslimit/core"
)

// count counts how a call's wait has ended. Calls that their callers gave up are not counted.
func (t *Turns) count(err error) {
	var wait *WaitError
	switch {
	case err == nil:
		t.of.Waits.Sent.Add(1)
		t.of.Count(string(core.Allowed), t.of.Source)
	case errors.As(err, &wait):
		t.of.Waits.GaveUp.Add(1)
		reason := core.LimitExceeded
		if wait.Paused {
			reason = core.Banned
		}
		t.of.Count(string(reason), t.of.Source)
	case errors.Is(err, core.ErrStore):
		t.of.Count(string(core.StoreFailClosed), string(core.FromNobody))
	}
}
