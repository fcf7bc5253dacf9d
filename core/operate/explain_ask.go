package operate

import (
	"context"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// ask asks the store about all rules: first for overrides and bans, which say what limits are in
// force, then for the counters of these limits, and for those that the engine wants to know.
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
	blocked := x.findStored(deadline)
	for _, e := range x.rules {
		if e.asked {
			e.findLimits()
			e.ask(x.store, x.parts.KeyHead)
		}
	}
	x.decide()
	x.store.Ask(deadline)
	if now := x.store.FindTime(deadline, blocked); now > 0 {
		x.Time = time.UnixMicro(now).UTC()
	}
	return x.failure(ctx)
}

// findStored reads the overrides and bans. If one of them is a block, it returns its key, because
// only the store's clock tells whether the block has ended.
func (x *explanation) findStored(ctx context.Context) (blocked string) {
	var keys []string
	asked := slices.DeleteFunc(slices.Clone(x.rules), func(e *explained) bool { return !e.asked })
	for _, e := range asked {
		if of := e.of.Counted; of.OverrideKey != "" {
			keys = append(keys, e.key(x.parts.KeyHead, of.OverrideKey))
		}
		if limit, tail := e.barring(); limit != nil {
			keys = append(keys, e.key(x.parts.KeyHead, tail))
		}
	}
	x.store.Read(ctx, keys)
	for _, e := range asked {
		if e.of.Counted.OverrideKey == "" {
			continue
		}
		if e.findStored(x.store, x.parts.KeyHead); blocked == "" && e.found.What == algorithm.OverrideBlocked {
			blocked = e.key(x.parts.KeyHead, e.of.Counted.OverrideKey)
		}
	}
	return blocked
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
	return &core.StoreError{Class: core.StoreErrorClass(failure.ClassOf(failed)), Err: failed}
}
