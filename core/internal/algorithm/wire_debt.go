package algorithm

import (
	"fmt"
	"strconv"
)

// AppendCharge appends what the script of ChargeScript takes. share bounds the debt: see Limit.Debt.
func AppendCharge(argv []any, counters []Counter, share float64, at int64) []any {
	argv = append(appendOverrides(argv, counters), strconv.FormatFloat(share, 'g', -1, 64))
	return appendCounters(argv, counters, at)
}

// ReadCharged reads what the script of ChargeScript replied.
func ReadCharged(reply []any, counters []Counter, verdicts []Verdict) error {
	n := numbers{left: readOverrides(reply, counters)}
	now := n.next()
	for i := range verdicts {
		verdicts[i] = Verdict{At: now, Taken: n.next(), Remaining: n.next(), ResetAfter: n.next(), Position: n.next()}
	}
	if n.wrong || len(n.left) > 0 {
		return fmt.Errorf("the script replied %.200v for %d counters", reply, len(verdicts))
	}
	answerSkipped(counters, verdicts, now, ToChargeInDebt)
	return nil
}
