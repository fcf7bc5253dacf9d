package outgoing

import (
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// ended counts and reports how a call's wait has ended, unless its caller gave it up.
func (a *attempt) ended(turn *Turn, waited time.Duration, err error) {
	r := limiter.OutgoingReport{Key: a.key, Source: a.prepared.Source, Waited: waited}
	var wait *WaitError
	switch {
	case err == nil:
		a.prepared.Counts.Sent.Add(1)
		r.Reason = string(core.Allowed)
	case errors.As(err, &wait):
		a.prepared.Counts.GaveUp.Add(1)
		r.Reason, r.RetryAfter = string(core.LimitExceeded), wait.Wait
		if wait.Paused {
			r.Reason = string(core.Banned)
		}
	case errors.Is(err, core.ErrStore):
		r.Reason, r.Source = string(core.StoreFailClosed), string(core.FromNobody)
	default:
		return
	}
	a.prepared.CountDecision(r.Reason, r.Source)
	if a.prepared.Report != nil {
		a.report(turn, r)
	}
}

// report reports how a call's wait has ended. If that panics, the turn is given up.
func (a *attempt) report(turn *Turn, r limiter.OutgoingReport) {
	reported := false
	if turn != nil {
		turn.ctx = a.ctx
		defer func() {
			if !reported {
				turn.Release()
			}
		}()
	}
	a.prepared.Report(a.ctx, r)
	reported = true
}

// refused counts and reports that the server refused the call.
func (t *Turn) refused(key string, a Answer) {
	of := &t.turns.prepared
	of.Counts.Refused.Add(1)
	if of.Report != nil {
		of.Report(t.ctx, limiter.OutgoingReport{Key: key, RetryAfter: a.Wait, ByServer: true})
	}
}
