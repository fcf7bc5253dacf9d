package algorithm

import (
	"fmt"
	"strconv"
)

// AppendCharge appends what the script of ChargeScript takes. share bounds the debt: see Limit.Debt.
func AppendCharge(argv []any, counters []Counter, once bool, share float64, at int64) []any {
	if once {
		argv = append(argv, RecordLife)
	}
	argv = append(argv, formatShare(share))
	return appendCounters(argv, counters, at)
}

// ReadCharged reads what the script of ChargeScript replied.
func ReadCharged(reply []any, counters []Counter, verdicts []Verdict) error {
	n := numbers{left: reply}
	now := n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, Taken: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
	}
	if n.wrong || len(n.left) > 0 {
		return fmt.Errorf("the script replied %.200v for %d counters", reply, len(verdicts))
	}
	return nil
}

// AppendOpen appends what the script of OpenScript takes. All counters have one cost.
func AppendOpen(argv []any, counters []Counter, b OpenBill, at int64) []any {
	return AppendDecide(append(argv, b.Span, int64(len(counters)), counters[0].Cost), counters, true, at)
}

// AppendSettle appends what the script of SettleScript takes.
func AppendSettle(argv []any, b *Bill, c BillChange, at int64) []any {
	argv = append(argv, boxed(c.Settle), c.Permits, formatShare(b.Share), b.Charges[0].At, b.Estimate())
	for i := range b.Charges {
		of := &b.Charges[i]
		argv = of.Limit.appendArgs(append(argv, of.Limit.tag, of.Position), "", at)
	}
	return argv
}

// ReadSettled reads what the script of SettleScript replied.
func ReadSettled(reply []any) (a BillAnswer, err error) {
	n := numbers{left: reply}
	n.next() // now
	a = BillAnswer{BillStatus(n.next()), n.next(), n.next(), n.next()}
	if n.wrong || len(n.left) > 0 || a.Status > BillSettled {
		return BillAnswer{}, fmt.Errorf("the script replied %.200v for a bill", reply)
	}
	return a, nil
}

func formatShare(share float64) string { return strconv.FormatFloat(share, 'g', -1, 64) }
