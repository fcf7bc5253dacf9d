package operate

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// ask asks the store about all rules: for the counters of the limits in force, and for those that the
// engine wants to know.
func (x *explanation) ask(ctx context.Context) error {
	x.Time = time.Now().UTC()
	if err := ctx.Err(); err != nil {
		for _, e := range x.rules {
			if e.asked {
				e.asked, e.undecided, e.failed = false, true, err
			}
		}
		return err
	}
	deadline, cancel := context.WithTimeout(ctx, x.parts.Timeout)
	defer cancel()
	x.store.Begin()
	for _, e := range x.rules {
		if e.asked {
			e.findMarks(x.trial)
			e.findLimits()
			e.ask(x.store, x.parts.KeyHead)
		}
	}
	x.decide()
	x.store.Ask(deadline)
	if now := x.store.FindTime(); now > 0 {
		x.Time = time.UnixMicro(now).UTC()
	}
	return x.failure(ctx)
}

// failure returns the error of the Explanation: why the store did not answer for one of the rules.
func (x *explanation) failure(ctx context.Context) (failed error) {
	for _, e := range x.rules {
		if err := e.findFailure(); failed == nil {
			failed = err
		}
	}
	if failed == nil {
		return nil
	}
	if ended := failure.CallersEnd(ctx); ended != nil {
		return ended
	}
	if x.unread != nil {
		failed = x.unread // says more than that the server was not asked again
	}
	return &core.StoreError{Class: core.StoreErrorClass(failure.ClassOf(failed)), Err: failed}
}
