package promise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// billsInAnyOrder opens, adds to and settles bills in any order, at any time. After each step, the
// counter answers as its model does. The model never holds more than a limit and its debt.
func (l *lab) billsInAnyOrder(t *testing.T, f facts) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom(f.limits()[:3]).Draw(rt, "limit") // the last has no room for a debt
		steps := tracesOf(limit, []core.Limit{limit.Limit}, []action{allow, open, open, add, settle, settle}).Draw(rt, "trace")
		err := l.play(t, func(limiter *core.Limiter) error {
			p := billPlayer{player: player{limiter: limiter, name: "name", subject: "subject"}, limit: limit.Limit, model: f.model()}
			for i, s := range steps {
				if err := errors.Join(p.play(s), p.compare(l.engine.source())); err != nil {
					return s.failed(i, err)
				}
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// billPlayer plays traces with bills on one counter, and on its model.
type billPlayer struct {
	player
	limit core.Limit
	model
	charges int // of the model
	bills   []*modelBill
}

// modelBill is a bill, with what the model was charged for it: the estimate, and then the additions.
type modelBill struct {
	*core.Bill
	charges []modelCharge
}

// modelCharge is a charge of the model, by its number.
type modelCharge struct{ number, permits int }

// play does a step.
func (p *billPlayer) play(s step) error {
	time.Sleep(p.until(s.wait, s.by).Truncate(time.Microsecond))
	switch {
	case s.do == allow || s.do == open:
		return p.admit(s.do, max(1, s.cost()))
	case len(p.bills) == 0:
		return nil
	}
	at := s.of % len(p.bills)
	b := p.bills[at]
	if s.do == add {
		taken := p.owe(s.n)
		b.charges = append(b.charges, taken)
		return want(b.Add(context.Background(), s.n), taken.permits < s.n)
	}
	p.bills = slices.Delete(p.bills, at, at+1)
	above := p.settle(b, s.n)
	return want(b.Settle(context.Background(), s.n), above)
}

// want returns nil if err is ErrDebtExceeded and the bound of the debt was exceeded, or if err is nil and
// it was not. Otherwise it returns an error.
func want(err error, exceeded bool) error {
	switch {
	case exceeded && errors.Is(err, core.ErrDebtExceeded):
		return nil
	case exceeded:
		return fmt.Errorf("%v, want ErrDebtExceeded", err)
	}
	return err
}

// admit asks for permits, as a bill or not.
func (p *billPlayer) admit(do action, n int) error {
	var bill *core.Bill
	var d core.Decision
	var err error
	counter := p.limiter.MustCounter(p.name, p.limit).WithBills(core.BillTerms{Expires: 24 * time.Hour})
	if do == open {
		bill, d, err = counter.Open(context.Background(), p.subject, n)
	} else {
		d, err = counter.AllowN(context.Background(), p.subject, n)
	}
	expected := p.ask(time.Now().UnixMicro(), p.limit, n, true)
	switch {
	case err != nil:
		return err
	case d.Allowed != (expected.retry == 0):
		return fmt.Errorf("%+v, want %+v", d, expected)
	case d.Allowed:
		p.note(modelCharge{p.charges, n}, bill)
	}
	p.last = d
	return nil
}

// note notes a charge of the model, and the bill that it opened, if any.
func (p *billPlayer) note(c modelCharge, bill *core.Bill) {
	p.charges++
	p.player.charges = append(p.player.charges, time.Now())
	if bill != nil {
		p.bills = append(p.bills, &modelBill{bill, []modelCharge{c}})
	}
}

// owe charges the model whether n permits fit or not, up to its debt.
func (p *billPlayer) owe(n int) (c modelCharge) {
	now, inDebt := time.Now().UnixMicro(), p.limit
	inDebt.Max *= 2
	c = modelCharge{p.charges, min(n, int(p.ask(now, inDebt, 0, false).left))}
	if c.permits > 0 {
		p.ask(now, inDebt, c.permits, true)
		p.note(c, nil)
	}
	return c
}

// settle makes the model hold what was used, and reports whether that exceeds the bound of the debt.
func (p *billPlayer) settle(b *modelBill, used int) (above bool) {
	back := -used
	for _, c := range b.charges {
		back += c.permits
	}
	if back < 0 {
		return p.owe(-back).permits < -back
	}
	slices.Reverse(b.charges[1:]) // the estimate is given back first, and then the newest addition
	for _, c := range b.charges {
		if part := min(back, c.permits); part > 0 {
			back -= part
			p.refund(time.Now().UnixMicro(), p.limit, c.number, part)
		}
	}
	return false
}

// compare compares the counter with its model.
func (p *billPlayer) compare(source core.Source) error {
	d, err := p.limiter.MustCounter(p.name, p.limit).Peek(context.Background(), p.subject)
	if err != nil {
		return err
	}
	expected := p.ask(time.Now().UnixMicro(), p.limit, 1, false)
	if expected.left < -int64(p.limit.Max) {
		return fmt.Errorf("%d permits exceed the debt", -expected.left)
	}
	return sameDecision(d, expected.decision(p.name, p.subject, p.limit, source))
}
