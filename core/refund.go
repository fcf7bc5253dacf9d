package core

import (
	"context"
	"fmt"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// receipt is what a Decision remembers of its charge, so that it can be given back.
type receipt struct {
	limit    *algorithm.Limit
	cost     int64 // 0: nothing was charged that could be given back
	at       int64 // microseconds since the epoch, by the store's clock
	position int64 // Charge.Position
	given    int64 // how much of it was given back before, written by refunds.note
	mark     string
	local    float64 // Charge.LocalShare
	dry      bool    // of a rule that is only tried
	of       *Limiter
	id       uint64 // of the charge; unique
}

// fill records in r, the zero receipt, what a call that passed was charged by a counter.
func (r *receipt) fill(l *Limiter, counter *algorithm.Counter, v *algorithm.Verdict, id uint64) {
	if counter.Limit.Properties().Slots {
		return
	}
	r.record(l, counter, v, id)
	r.mark = counter.Mark
	if v.From == algorithm.FromLocal {
		r.local = counter.LocalShare
	}
}

// record records in r, the zero receipt, what the store charged a counter.
func (r *receipt) record(l *Limiter, counter *algorithm.Counter, v *algorithm.Verdict, id uint64) {
	r.limit, r.cost, r.at, r.position, r.of, r.id = counter.Limit, v.Taken, v.At, v.Position, l, id
}

// Refund gives back n permits that a decision charged, as far as they still count: permits that
// have come back by themselves, or whose window is over, are not given back again. If there are
// several limits, each gets n back. A reservation whose turn has not come gives back only the
// permits that nobody has reserved after it, because those waits were already announced.
//
// A TokenBucket keeps the places of 256 gaps: of charges that were given back while charges before
// them still count, and of runs of calls at another, faster rate. Refunds behind more gaps than
// that, or of charges that were made before a third rate was used, may give back less, and never
// more. Stats.RefundsLost counts the difference.
//
// It is no error if nothing of the charge counts any more. Do not refund after a Reset of the same
// counter: the refund would be taken from charges made since.
//
// Giving back more than was charged, at once or in several steps, is a *[RuleError]. So is giving
// back a decision of another Limiter, or one that charged nothing. The limiter remembers the
// amounts for the 65,536 decisions that were refunded last. A refund that ends in ErrStore may or
// may not have been carried out, and cannot be tried again. Other errors are those of [Counter].
func (l *Limiter) Refund(ctx context.Context, d Decision, n int) error {
	switch {
	case !l.made():
		return errNoLimiter
	case n < 1:
		return &RuleError{Rule: d.Rule, Field: "n", Value: n, Why: "must be positive"}
	}
	var charges []algorithm.Charge
	var receipts []receipt
	for _, d := range d.each() {
		if r := d.receipt; r.cost > 0 {
			if r.of != l {
				return &RuleError{Rule: d.Rule, Field: "decision", Value: d.Key, Why: "is one of another Limiter, which alone can refund it"}
			}
			receipts = append(receipts, r)
			charges = append(charges, algorithm.Charge{
				Key: l.receiptKey(&d), Limit: r.limit, Cost: int64(n), At: r.at, Position: r.position,
				Mark: r.mark, LocalShare: r.local,
			})
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if why := l.refunds.take(receipts, int64(n)); why != "" {
		return &RuleError{Rule: d.Rule, Field: "n", Value: n, Why: why}
	}
	for i := range charges {
		charges[i].Given = receipts[i].given
	}
	return l.storeError(d.Rule, l.store.GiveBack(ctx, charges))
}

// receiptKey is the key of the counter that a decision charged.
func (l *Limiter) receiptKey(d *Decision) []byte {
	return rediskey.AppendLimit(nil, l.keyHead, d.Key, d.Rule, d.receipt.dry, d.receipt.limit)
}

// refunds remembers how much of each charge was given back. A Decision is a value, so its copies
// cannot share that. There are two generations of maxRefunds entries. When the newer one is full,
// the older one is forgotten.
type refunds struct {
	mu           sync.Mutex
	newer, older map[uint64]int64
}

const maxRefunds = 65_536

// take records that n permits of each charge are given back. If they cannot be, it records nothing
// and returns why.
func (r *refunds) take(receipts []receipt, n int64) (why string) {
	if len(receipts) == 0 {
		return "is more than this decision charged: nothing"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range receipts {
		if given := r.given(receipts[i].id); n > receipts[i].cost-given {
			return fmt.Sprintf("is more than is left of the charge: %d of %d were refunded before", given, receipts[i].cost)
		}
	}
	r.note(receipts, n)
	return ""
}

// note adds n to what was given back of each charge, and writes the amount given back before into
// the receipts. The refunds must be locked.
func (r *refunds) note(receipts []receipt, n int64) {
	next := r.newer
	full := next == nil || len(next)+len(receipts) > maxRefunds
	if full {
		next = make(map[uint64]int64)
	}
	for i := range receipts { // before the older ones are forgotten: some of these may be among them
		receipts[i].given = r.given(receipts[i].id)
		next[receipts[i].id] = receipts[i].given + n
	}
	if full {
		r.older, r.newer = r.newer, next
	}
}

// takeRest records that the rest of a charge is given back, and returns how much that is. It reads
// and writes under one lock. Otherwise a Refund could come in between, and the rest would be less
// than was read.
func (r *refunds) takeRest(of *receipt) (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = of.cost - r.given(of.id)
	if n > 0 {
		r.note([]receipt{*of}, n)
	}
	return n
}

func (r *refunds) given(id uint64) int64 {
	if given, ok := r.newer[id]; ok {
		return given
	}
	return r.older[id]
}
