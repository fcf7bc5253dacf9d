package core

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// Bill is the open charge of a call whose cost is known only afterwards. [Counter.Open] opens it. It is
// settled once, in whichever process, and stays on the counters where it was opened, whatever limit,
// plan or override its subject has later. It is safe for concurrent use.
//
// A bill that is never settled stays at what it was charged: after a crash, say, or if the caller hung
// up and the usage is not known. Only Settle and Cancel give back.
//
// The methods are carried out even if the context has ended, because bills are settled when callers
// have left; they take no longer than Options.Timeout. The error is [ErrBillUnknown] if the bill has
// expired or was settled long ago, [ErrBillSettled] if it was settled before, [ErrDebtExceeded] if less
// could be charged than was used, [ErrStore], or a *[RuleError] if a number is negative.
type Bill struct {
	front         *front
	costs         *tally.Costs
	name, subject string
	id            string
	limits        []Limit        // those that were charged, in the order of bill.Charges
	bill          algorithm.Bill // without Charges if nothing was charged
	unanswered    atomic.Bool    // the store did not answer a settlement, and may have carried it out
	addedAbove    atomic.Int64   // permits that Add could not charge, as far as this process knows
}

// Add charges n permits more, whether they fit or not, as [Counter.Charge] does: more was used than was
// charged so far. After [ErrStore] it may or may not have been carried out. Do not repeat it then:
// Settle corrects the sum.
func (b *Bill) Add(ctx context.Context, n int) error {
	if n == 0 && b != nil {
		return nil
	}
	return b.change(ctx, "n", n, false)
}

// Settle ends the bill at the permits that were used in all, including those of Add. If more was
// charged, the rest is given back as far as it still counts: permits whose window is over are not given
// back again. If more was used, the rest is charged now, whether it fits or not, as [Counter.Charge]
// does.
//
// The bill is settled once, however many processes try. Within five minutes, settling it again at the
// same number changes nothing and returns what it returned at first, so Settle can be repeated after
// [ErrStore]. Later it is [ErrBillUnknown].
//
// The charge of [Counter.Open] is given back first, then those of Add, the newest first. Of more than
// 32 of these, only the newest 32 can be given back. After a Reset of the same counters, nothing
// comes back.
func (b *Bill) Settle(ctx context.Context, used int) error { return b.change(ctx, "used", used, true) }

// Cancel settles the bill at 0: nothing was used, because the work was not begun.
func (b *Bill) Cancel(ctx context.Context) error { return b.Settle(ctx, 0) }

func (b *Bill) change(ctx context.Context, field string, n int, settles bool) error {
	switch {
	case b == nil: // the call was refused
		return ErrBillUnknown
	case n < 0:
		return wrongArgument(b.name, field, n, "must not be negative")
	case len(b.bill.Charges) == 0:
		return nil
	}
	change := algorithm.BillChange{Settle: settles, Permits: largestCharge(n)}
	if settles { // several windows together may have been charged more than one holds
		change.Permits = min(int64(n), algorithm.MaxBilled)
	}
	settlement := algorithm.Change{Kind: algorithm.ChangesBill, Bill: &b.bill, To: change}
	err := b.front.Store.Change(context.WithoutCancel(ctx), &settlement)
	answer := settlement.Billed
	above := answer.Above
	if above > 0 {
		above += int64(n) - change.Permits
	}
	if b.count(&answer, change, err) {
		b.countAbove(above, settles)
	}
	switch {
	case err != nil:
		return b.front.failures.errorOf(b.name, err)
	case answer.Status == algorithm.BillUnknown:
		return ErrBillUnknown
	case answer.Status == algorithm.BillSettled && (!settles || answer.Used != change.Permits):
		return fmt.Errorf("%w, at %d", ErrBillSettled, answer.Used)
	}
	return errAbove(above)
}

// count counts the outcome of a change, and reports whether it was carried out. If the answer to a
// settlement was lost, it is counted when it is repeated.
func (b *Bill) count(a *algorithm.BillAnswer, change algorithm.BillChange, err error) (done bool) {
	if !change.Settle {
		return err == nil && a.Status == algorithm.BillChanged
	}
	if err != nil {
		b.unanswered.Store(true)
		return false
	}
	repeated := b.unanswered.Swap(false)
	switch {
	case a.Status == algorithm.BillUnknown:
		b.costs.Miss()
		return false
	case a.Status == algorithm.BillChanged, repeated && a.Used == change.Permits:
		b.costs.Settle(b.bill.Estimate(), change.Permits)
		return true
	default:
		return false
	}
}

// countAbove counts permits that were not charged. The answer to a settlement includes those that an Add
// could not charge, which were counted then.
func (b *Bill) countAbove(above int64, settles bool) {
	counted := b.addedAbove.Load()
	if settles {
		above = max(0, above-counted)
	} else {
		b.addedAbove.Add(above)
	}
	b.costs.Exceed(uint64(above))
}
