package redisstore

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// action is what a request asks of its counters instead of a decision. It is not merged with other
// requests. It must not change once it is in a request, because a command may outlive its caller.
type action interface {
	script(counters []algorithm.Counter) *algorithm.Script
	// furtherKeys returns the keys behind those of the counters.
	furtherKeys() []string
	// appendArgs appends the arguments of the script. at is about now, in microseconds.
	appendArgs(argv []any, counters []algorithm.Counter, at int64) []any
	// read reads the reply of the script.
	read(reply []any, counters []algorithm.Counter, verdicts []algorithm.Verdict) error
}

// act carries out an action on counters that lie on one shard.
func (s *Store) act(ctx context.Context, a action, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	r := s.newRequest(counters, false, 1)
	r.action = a
	s.decideOnShard(ctx, ctx, r, verdicts)
}

// Charge charges the counters, which lie on one shard, whether their costs fit or not. share bounds
// the debt: see algorithm.Limit.Debt. With a record, they are charged once: see algorithm.Charge.
func (s *Store) Charge(ctx context.Context, counters []algorithm.Counter, share float64, record []byte, verdicts []algorithm.Verdict) {
	s.act(ctx, chargeInDebt{share, string(record)}, counters, verdicts)
}

// chargeInDebt is the action of Charge.
type chargeInDebt struct {
	share  float64
	record string // "": none
}

func (c chargeInDebt) script(counters []algorithm.Counter) *algorithm.Script {
	return algorithm.ChargeScript(counters, c.record != "")
}

func (c chargeInDebt) furtherKeys() []string {
	if c.record == "" {
		return nil
	}
	return []string{c.record}
}

func (c chargeInDebt) appendArgs(argv []any, counters []algorithm.Counter, at int64) []any {
	return algorithm.AppendCharge(argv, counters, c.record != "", c.share, at)
}

func (chargeInDebt) read(reply []any, counters []algorithm.Counter, verdicts []algorithm.Verdict) error {
	return algorithm.ReadCharged(reply, counters, verdicts)
}
