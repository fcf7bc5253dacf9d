package inflight

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Completion is what remains to be done after a call's handler: some of what the call was charged
// is given back. A nil Completion has nothing to do.
type Completion struct {
	keeper *Keeper
	ctx    context.Context
	isRPC  bool // outcomes are codes of gRPC
	shown  bool // the decision was shown to code that may have refunded some of it

	slots     []algorithm.Charge // of Concurrency
	counted   []countedCharge
	again     []algorithm.Charge // given back after slots, which may have the same counters
	estimates *Estimates         // nil if there is nothing to settle
	behind    []*Behind          // what learns how the call ends
	reply     Reply
	done      atomic.Bool
}

// countedCharge is a charge that is kept or given back by the outcome.
type countedCharge struct {
	algorithm.Charge
	id    uint64 // that of its Receipt, or 0 if it has none
	count func(status int) bool
	least int64 // of an estimate: what is charged even if nothing was used
	again bool  // the charge is not the call's first on its counter
	// charged, of an estimate, receives a later charge to its counter; nil: nobody does.
	charged func(*algorithm.Counter, *algorithm.Verdict)
	// uncounted, of an estimate, is set if the charge does not count.
	uncounted *bool
}

// above returns how much of an estimate is above what was used.
func (c *countedCharge) above(used int64) int64 { return c.Cost - max(used, c.least) }

// Reply follows the reply of a handler.
type Reply interface {
	// Status returns the status that was sent, or 0 if there is none yet.
	Status() int
}

// NewCompletion returns the Completion of a call without charges. The context is the call's own.
// isRPC reports whether the outcome is a gRPC code. shown reports whether the decision is shown to
// code that may refund some of it.
func (k *Keeper) NewCompletion(ctx context.Context, isRPC, shown bool) *Completion {
	return &Completion{keeper: k, ctx: ctx, isRPC: isRPC, shown: shown}
}

// Add adds a charge of the call. A slot is given back when the handler has returned. Any other
// charge is given back if count returns false for the outcome. id is the ID of the charge's
// Receipt.
func (u *Completion) Add(charge algorithm.Charge, id uint64, count func(status int) bool) {
	charge.Key = slices.Clone(charge.Key)
	if charge.Limit.Properties().Slots {
		u.slots = append(u.slots, charge)
	} else {
		u.counted = append(u.counted, countedCharge{Charge: charge, id: id, count: count})
	}
}

// Settles sets the Estimates that the handler of the call can settle.
func (u *Completion) Settles(e *Estimates) { u.estimates = e }

// Tells makes the Completion tell a Behind when the handler begins, and how the call ends.
func (u *Completion) Tells(b *Behind) { u.behind = append(u.behind, b) }

// Estimates returns what Settles has set, or nil.
func (u *Completion) Estimates() *Estimates {
	if u == nil {
		return nil
	}
	return u.estimates
}

// HoldsReply reports whether the handler gives something back before it returns, so that the caller
// must not see the end of the reply earlier: slots, or what was estimated too high.
func (u *Completion) HoldsReply() bool { return u != nil && (len(u.slots) > 0 || u.estimates != nil) }

// NeedsStatus reports whether the status of the reply determines what is given back.
func (u *Completion) NeedsStatus() bool {
	return u != nil && (len(u.counted) > 0 || u.estimates.counted() || slices.ContainsFunc(u.behind, func(b *Behind) bool { return b.counts }))
}

// Follow sets the Reply, which knows the status that was sent even if the handler does not return
// it.
func (u *Completion) Follow(r Reply) { u.reply = r }

// Run runs the call's handler, which returns its status. Then, even if the handler panics, it gives
// back what the call holds. If Run is called again, it only runs the handler.
func (u *Completion) Run(handle func() (status int)) {
	if u == nil || u.done.Swap(true) {
		handle()
		return
	}
	status, ended := 0, false
	stop := u.hold()
	for _, b := range u.behind {
		b.begin()
	}
	defer func() {
		stop()
		if ended {
			u.finish(returned(u.ctx, u.isRPC, status, u.sent()))
		} else {
			u.finish(panicked(u.isRPC, u.sent()))
		}
	}()
	status = handle()
	ended = true
}

// hold begins to renew the slots, and returns what ends that.
func (u *Completion) hold() (stop func() bool) {
	if len(u.slots) == 0 {
		return func() bool { return true }
	}
	return u.keeper.Hold(u.slots).stop
}

// Abandon ends a call whose handler will not run, as if the handler had panicked.
func (u *Completion) Abandon() {
	if u != nil {
		u.finish(panicked(u.isRPC, u.sent()))
	}
}

// sent returns the status that the reply is known to have, or 0.
func (u *Completion) sent() int {
	if u.reply == nil {
		return 0
	}
	return u.reply.Status()
}

// finish frees the slots, and refunds the charges that do not count by the outcome. The end of the
// reply is held back meanwhile, so that a client that makes one call after another finds its
// permits. The refund takes a second trip.
func (u *Completion) finish(how ending) {
	for _, b := range u.behind {
		b.end(how)
	}
	defer func() {
		u.estimates.countCosts()
		u.keeper.giveBack(u.ctx, u.slots)
		u.keeper.giveBack(u.ctx, u.again)
	}()
	u.addRefunds(append(u.counted, u.estimates.end()...), how)
}

// addRefunds adds the charges that do not count by the outcome to u.slots and u.again, which are
// given back. If a count panics, only its own charge is kept.
func (u *Completion) addRefunds(counted []countedCharge, how ending) {
	if len(counted) == 0 {
		return
	}
	defer u.addRefunds(counted[1:], how)
	of := &counted[0]
	if how.counts(of.count) {
		return
	}
	if of.uncounted != nil {
		*of.uncounted = true
	}
	charge := of.Charge
	if u.shown && of.id != 0 {
		charge = u.keeper.refunds.TakeRest(charge, of.id)
	}
	switch {
	case of.again && charge.Cost > 0:
		u.again = append(u.again, charge)
	case charge.Cost > 0:
		u.slots = append(u.slots, charge)
	}
}
