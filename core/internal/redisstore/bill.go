package redisstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Open decides a call on one shard like Decide and, if it passes, records a bill. All counters have
// one cost.
func (s *Store) Open(ctx context.Context, counters []algorithm.Counter, b algorithm.OpenBill, verdicts []algorithm.Verdict) {
	s.act(ctx, openBill(b), counters, verdicts)
}

// openBill is the action of Open.
type openBill algorithm.OpenBill

func (openBill) script(counters []algorithm.Counter) *algorithm.Script {
	return algorithm.OpenScript(counters)
}

func (b openBill) furtherKeys() []string { return []string{string(b.Key)} }

func (b openBill) appendArgs(argv []any, counters []algorithm.Counter, at int64) []any {
	return algorithm.AppendOpen(argv, counters, algorithm.OpenBill(b), at)
}

func (openBill) read(reply []any, counters []algorithm.Counter, verdicts []algorithm.Verdict) error {
	return algorithm.ReadDecided(reply, counters, true, verdicts)
}

// Settle changes a bill. The error is the caller's own if the context has ended, and otherwise a
// *failure.Error.
func (s *Store) Settle(ctx context.Context, b *algorithm.Bill, change algorithm.BillChange) (a algorithm.BillAnswer, err error) {
	counters := b.Counters()
	verdicts := make([]algorithm.Verdict, len(counters))
	s.act(ctx, &settleBill{b, change, &a}, counters, verdicts)
	if ended := verdicts[0].Ended; ended != nil {
		return a, ended
	}
	s.refundsLost.Add(uint64(a.Lost))
	return a, verdicts[0].Err
}

// settleBill is the action of Settle. read, which the caller runs, stores the answer.
type settleBill struct {
	bill   *algorithm.Bill
	change algorithm.BillChange
	answer *algorithm.BillAnswer
}

func (s *settleBill) script(counters []algorithm.Counter) *algorithm.Script {
	return algorithm.SettleScript(counters)
}

func (s *settleBill) furtherKeys() []string { return []string{string(s.bill.Key)} }

func (s *settleBill) appendArgs(argv []any, _ []algorithm.Counter, at int64) []any {
	return algorithm.AppendSettle(argv, s.bill, s.change, at)
}

func (s *settleBill) read(reply []any, _ []algorithm.Counter, _ []algorithm.Verdict) (err error) {
	*s.answer, err = algorithm.ReadSettled(reply)
	return err
}
