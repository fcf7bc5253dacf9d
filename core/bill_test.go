package core_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// billing is a counter whose costs are known afterwards.
type billing struct {
	*testing.T
	core.Counter
}

// open opens a bill of a subject s.
func (b billing) open(estimate int) *core.Bill {
	b.Helper()
	bill, d, err := b.Open(background, "s", estimate)
	if err != nil || !d.Allowed || bill == nil {
		b.Fatalf("%+v, %v", d, err)
	}
	return bill
}

// is checks an error. nil wants none.
func (b billing) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%v, want %v", err, want)
	}
}

// left checks what is left of each limit.
func (b billing) left(want ...int) {
	b.Helper()
	d, err := b.Peek(background, "s")
	if err != nil {
		b.Fatal(err)
	}
	each := d.All
	if each == nil {
		each = []core.Decision{d}
	}
	for i, d := range each {
		if d.Remaining != want[i] {
			b.Errorf("%v: %d left, want %d", d.Limit, d.Remaining, want[i])
		}
	}
}

// onBillings runs a test with two limits on both engines.
func onBillings(t *testing.T, test func(b billing, limiter *core.Limiter)) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		test(billing{t, limiter.MustCounter("tokens", core.PerHour(10), core.PerCalendarMonth(100, "UTC"))}, limiter)
	})
}

// A bill ends once, at what was used in all. Ending it a second time changes nothing, and is no
// error only if it is the same.
func TestABillIsSettledOnce(t *testing.T) {
	onBillings(t, func(b billing, _ *core.Limiter) {
		bill := b.open(4)
		b.is(bill.Add(background, 3), nil)
		b.left(3, 93)
		b.is(bill.Settle(background, 5), nil)
		b.left(5, 95)
		b.is(bill.Settle(background, 5), nil)
		err := bill.Settle(background, 6)
		b.is(err, core.ErrBillSettled)
		if err == nil || !strings.HasSuffix(err.Error(), ", at 5") {
			b.Errorf("the error does not tell at what: %v", err)
		}
		b.is(bill.Cancel(background), core.ErrBillSettled)
		b.is(bill.Add(background, 1), core.ErrBillSettled)
		b.left(5, 95)
		over := b.open(1)
		b.is(over.Settle(background, 12), nil)
		b.left(0, 83)
		b.is(bill.Settle(background, math.MaxInt), core.ErrBillSettled)
	})
}

// A refused Open charges nothing, and its bill has nothing to settle.
func TestARefusedOpenChargesNothing(t *testing.T) {
	onBillings(t, func(b billing, _ *core.Limiter) {
		first := b.open(6)
		bill, d, err := b.Open(background, "s", 5)
		if bill != nil || d.Allowed || err != nil || d.RetryAfter <= 0 {
			b.Fatalf("%v, %+v, %v", bill, d, err)
		}
		b.left(4, 94)
		b.is(bill.Settle(background, 1), core.ErrBillUnknown)
		b.is(bill.Add(background, 0), core.ErrBillUnknown)
		if bill.Token() != "" {
			b.Error("the token of no bill")
		}
		b.is(first.Settle(background, 0), nil)
		b.open(5) // the refusal is no longer remembered
	})
}

// A bill that is never settled stays at what it was charged: nothing is given back because the
// context of a caller who hung up has ended. Settling is carried out even then.
func TestADisconnectDoesNotRefund(t *testing.T) {
	onBillings(t, func(b billing, _ *core.Limiter) {
		gone, hangUp := context.WithCancel(background)
		bill, _, err := b.Open(gone, "s", 4)
		b.is(err, nil)
		hangUp()
		b.left(6, 96)
		b.is(bill.Add(gone, 1), nil)
		b.is(bill.Settle(gone, 2), nil)
		b.left(8, 98)
	})
}

// Of many additions, the newest 32 can be given back.
func TestABillWithManyAdditions(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		b := billing{t, newLimiter(t, options).MustCounter("tokens", core.PerDay(100), core.PerHour(1).Bucket(100))}
		bill := b.open(10)
		for range 40 {
			b.is(bill.Add(background, 1), nil)
		}
		b.left(50, 50)
		b.is(bill.Settle(background, 3), nil)
		b.left(92, 92)
	})
}

// A bill gives back although its counter is in debt.
func TestABillGivesBackInDebt(t *testing.T) {
	eachLasting(t, 10, func(t *testing.T, limiter *core.Limiter, limit core.Limit) {
		if limit.Algorithm == core.SlidingLog {
			return
		}
		b := billing{t, limiter.MustCounter("tokens", limit)}
		bill := b.open(8)
		_, err := b.Charge(background, "s", 5)
		b.is(err, nil)
		b.is(bill.Settle(background, 1), nil)
		b.left(4)
	})
}

// An estimate that can never fit is an error. With MaxEstimate it is cut, so that a wrong one does not
// take the whole limit.
func TestAnEstimateIsNeverRefusedForEver(t *testing.T) {
	onBillings(t, func(b billing, _ *core.Limiter) {
		_, _, err := b.Open(background, "s", 11)
		b.is(err, core.ErrCostExceedsLimit)
		for _, overrides := range []bool{false, true} {
			if b.Counter = b.WithBills(core.BillTerms{MaxEstimate: 0.25}); overrides {
				b.Counter = b.WithOverrides()
			}
			bill := b.open(math.MaxInt)
			b.left(8, 98)
			b.is(bill.Settle(background, 0), nil)
		}
	})
}

// The part of a settlement above the bound of the debt is reported and counted; the rest is charged.
func TestABillExceedsTheDebt(t *testing.T) {
	onBillings(t, func(b billing, limiter *core.Limiter) {
		b.Counter = b.WithBills(core.BillTerms{MaxDebt: 0.5})
		bill := b.open(5)
		for range 2 { // also if the reply to the first was lost
			err := bill.Settle(background, 18)
			b.is(err, core.ErrDebtExceeded)
			if err == nil || !strings.Contains(err.Error(), ": 3 were") {
				b.Errorf("%v, want 3 that were not charged", err)
			}
		}
		b.left(0, 82)
		if n := limiter.Stats().DebtExceeded; n != 3 {
			b.Errorf("%d exceeded, want 3", n)
		}
		_, err := b.Charge(background, "s", 1)
		b.is(err, core.ErrDebtExceeded)
	})
}

// A use above the bound is counted once, whether an Add or the settlement finds it.
func TestAUseAboveTheDebtIsCountedOnce(t *testing.T) {
	onBillings(t, func(b billing, limiter *core.Limiter) {
		bill := b.open(5)
		b.is(bill.Add(background, 17), core.ErrDebtExceeded) // 5 and 17 of 10 and a debt of 10
		b.is(bill.Settle(background, 23), core.ErrDebtExceeded)
		if n := limiter.Stats().DebtExceeded; n != 3 {
			b.Errorf("%d exceeded, want 3", n)
		}
	})
}

// Wrong terms and numbers are errors, and change nothing.
func TestWrongBills(t *testing.T) {
	onBillings(t, func(b billing, _ *core.Limiter) {
		for _, terms := range []core.BillTerms{
			{Expires: time.Millisecond}, {Expires: 367 * 24 * time.Hour}, {MaxDebt: -1}, {MaxDebt: 10.1}, {MaxDebt: math.NaN()},
			{MaxEstimate: -0.1}, {MaxEstimate: 1.1}, {MaxEstimate: math.NaN()},
		} {
			if _, _, err := b.WithBills(terms).Open(background, "s", 1); !isWrong(err) {
				b.Errorf("%+v: %v", terms, err)
			}
		}
		bill := b.open(1)
		for _, err := range []error{bill.Add(background, -1), bill.Settle(background, -1)} {
			if !isWrong(err) {
				b.Errorf("a negative number: %v", err)
			}
		}
		b.left(9, 99)
	})
}

// A bill replaces the refund of its decision.
func TestABillsDecisionCannotBeRefunded(t *testing.T) {
	onBillings(t, func(b billing, limiter *core.Limiter) {
		bill, d, err := b.Open(background, "s", 4)
		b.is(err, nil)
		_, single, err := limiter.MustCounter("single", core.PerHour(10)).Open(background, "s", 4)
		b.is(err, nil)
		for _, d := range append(d.All, d, single) {
			if err := limiter.Refund(background, d, 1); !isWrong(err) {
				b.Errorf("%v", err)
			}
		}
		b.is(bill.Settle(background, 1), nil)
		b.left(9, 99)
	})
}
