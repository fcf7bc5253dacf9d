package core

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// completion is what remains to be done after a call's handler.
type completion struct {
	limiter *Limiter
	ctx     context.Context
	slots   []algorithm.Charge // of Concurrency
	counted []countedCharge
	isRPC   bool
	shown   bool // somebody was shown the decision, and may have refunded some of it
	outer   *outerCall
	done    atomic.Bool
}

// countedCharge is the charge of a rule that counts by the outcome.
type countedCharge struct {
	count   func(status int) bool
	charge  algorithm.Charge
	receipt receipt
}

func (u *completion) run(handle func() (status int)) {
	status := u.panicStatus()
	stop := func() bool { return true }
	if len(u.slots) > 0 {
		stop = u.limiter.hold(u.slots).stop
	}
	u.outer.begin()
	defer func() {
		u.outer.end()
		stop()
		u.finish(status)
	}()
	status = u.final(handle())
}

// panicStatus returns the outcome of a call whose handler panicked.
func (u *completion) panicStatus() (status int) {
	if u.isRPC {
		return codeInternal
	}
	return http.StatusInternalServerError
}

// statusCallerLeft is the outcome of a call whose caller left before it was answered. nginx
// introduced the number.
const statusCallerLeft = 499

// final returns the outcome of a call whose handler ended with a status. If that is 0 or
// informational (gin and echo take early hints for the answer itself), the server sends 200, unless
// the caller has left.
func (u *completion) final(status int) int {
	switch {
	case u.isRPC || status >= http.StatusOK || status == http.StatusSwitchingProtocols:
		return status
	case errors.Is(u.ctx.Err(), context.Canceled):
		return statusCallerLeft
	default:
		return http.StatusOK
	}
}

// finish frees the slots, and refunds the charges that do not count by the outcome. It runs before
// the caller can know that the call is over ([Answer.Watch]). So a client that makes one call after
// another finds its permits.
func (u *completion) finish(status int) {
	defer func() { u.limiter.giveBack(u.ctx, u.slots) }()
	u.addRefunds(u.counted, status)
}

// addRefunds adds to u.slots, which are given back, the charges that do not count by the outcome.
// If a Count panics, its own charge is kept, and no other.
func (u *completion) addRefunds(counted []countedCharge, status int) {
	if len(counted) == 0 {
		return
	}
	defer u.addRefunds(counted[1:], status)
	of := &counted[0]
	if of.count(status) {
		return
	}
	charge := of.charge
	if u.shown {
		charge.Cost = u.limiter.refunds.takeRest(&of.receipt)
		charge.Given = of.receipt.cost - charge.Cost
	}
	if charge.Cost > 0 {
		u.slots = append(u.slots, charge)
	}
}

// giveBack gives back charges when a call has ended. An error is logged. Slots are tried again,
// because nothing else frees them before their Window is over.
func (l *Limiter) giveBack(ctx context.Context, charges []algorithm.Charge) {
	if len(charges) == 0 {
		return
	}
	err := l.store.GiveBack(ctx, charges)
	if err == nil {
		return
	}
	l.failures.Add(err)
	slots := slices.DeleteFunc(slices.Clone(charges), func(c algorithm.Charge) bool { return !c.Limit.Properties().Slots })
	l.slotRetries.Add(slots, 1)
	l.operatorLog.GiveBackFailed(err) // last, because a logger may panic
}

// abandon ends a call as a panic in its handler would. It is for a call that was not decided,
// because a function of the service owner's panicked.
func (c *call) abandon() {
	if !c.passed { // nothing was charged
		return
	}
	if u := c.completion(); u != nil {
		u.finish(u.panicStatus())
	}
}

// completion returns what an allowed call has to give back later, or nil.
func (c *call) completion() *completion {
	for i := range c.limits {
		if c.limits[i].count != nil || c.counters[i].Limit.Properties().Slots {
			return c.collect()
		}
	}
	return nil
}

func (c *call) collect() *completion {
	options := &c.limiter.options
	u := &completion{limiter: c.limiter, isRPC: c.Method() == "", shown: options.Expose || options.OnDecision != nil || c.hasSoft}
	for i := range c.limits {
		a, charge := &c.limits[i], c.counters[i].Charged(&c.verdicts[i])
		if charge.Cost == 0 {
			continue
		}
		charge.Key = append([]byte(nil), charge.Key...)
		switch {
		case charge.Limit.Properties().Slots:
			u.slots = append(u.slots, charge)
		case a.count != nil:
			counted := countedCharge{count: a.count, charge: charge}
			counted.receipt.fill(c.limiter, &c.counters[i], &c.verdicts[i], c.id+uint64(i))
			u.counted = append(u.counted, counted)
		}
	}
	if len(u.slots)+len(u.counted) == 0 {
		return nil
	}
	u.ctx = c.Context()
	return u
}
