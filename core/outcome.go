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

	response *Response // follows the reply, or nil
}

// countedCharge is the charge of a rule that counts by the outcome.
type countedCharge struct {
	count   func(status int) bool
	charge  algorithm.Charge
	receipt receipt
}

func (u *completion) run(handle func() (status int)) {
	status, returned := 0, false
	stop := func() bool { return true }
	if len(u.slots) > 0 {
		stop = u.limiter.hold(u.slots).stop
	}
	u.outer.begin()
	defer func() {
		u.outer.end()
		stop()
		if returned {
			u.finish(u.returned(status))
		} else {
			u.finish(u.panicked())
		}
	}()
	status = handle()
	returned = true
}

// ending is how a call ended: with a status, or with either of two. Callers can bring about the
// latter, so the call counts if it counts by one of them.
type ending [2]int

// counts reports whether the call counts.
func (e ending) counts(count func(status int) bool) bool {
	return count(e[0]) || e[1] != e[0] && count(e[1])
}

// panicked returns the ending of a call whose handler panicked. The reply may have begun before,
// and callers who leave in the middle of it make some handlers panic.
func (u *completion) panicked() ending {
	if u.isRPC {
		return ending{codeInternal, codeInternal}
	}
	if sent := u.response.Status(); isFinal(sent) {
		return ending{http.StatusInternalServerError, sent}
	}
	return ending{http.StatusInternalServerError, http.StatusInternalServerError}
}

// statusCallerLeft is the outcome of a call whose caller left before it was answered. nginx
// introduced the number.
const statusCallerLeft = 499

// returned returns the ending of a call whose handler returned a status. If that is 0 or
// informational (gin and echo take early hints for the answer itself), and nothing was sent, the
// server sends 200. If the caller seems to have left, that may be a trick: a client who closes its
// half of the connection still gets the 200.
func (u *completion) returned(status int) ending {
	if !u.isRPC && !isFinal(status) {
		status = u.response.Status() // of a flush, for example, which echo does not notice
	}
	switch {
	case u.isRPC || isFinal(status):
		return ending{status, status}
	case errors.Is(u.ctx.Err(), context.Canceled):
		return ending{http.StatusOK, statusCallerLeft}
	default:
		return ending{http.StatusOK, http.StatusOK}
	}
}

// isFinal reports whether no other status of the call can follow this one.
func isFinal(status int) bool {
	return status >= http.StatusOK || status == http.StatusSwitchingProtocols
}

// finish frees the slots, and refunds the charges that do not count by the outcome. It runs before
// the caller can know that the call is over ([Answer.Watch]). So a client that makes one call after
// another finds its permits.
func (u *completion) finish(ended ending) {
	defer func() { u.limiter.giveBack(u.ctx, u.slots) }()
	u.addRefunds(u.counted, ended)
}

// addRefunds adds to u.slots, which are given back, the charges that do not count by the outcome.
// If a Count panics, its own charge is kept, and no other.
func (u *completion) addRefunds(counted []countedCharge, ended ending) {
	if len(counted) == 0 {
		return
	}
	defer u.addRefunds(counted[1:], ended)
	of := &counted[0]
	if ended.counts(of.count) {
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
		u.finish(u.panicked())
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
