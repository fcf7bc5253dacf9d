// Package refund remembers what calls were charged, and how much of that was given back, so that
// nothing is given back twice.
package refund

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// Receipt is what a decision remembers about its charge, so that it can be given back. The zero
// Receipt belongs to a decision that charged nothing.
type Receipt struct {
	Limit    *algorithm.Limit
	Cost     int64   // 0: nothing was charged that could be given back
	at       int64   // microseconds since the epoch, by the store's clock
	position int64   // Charge.Position
	mark     string  // Counter.Mark
	local    float64 // Charge.LocalShare
	Turn     bool    // set by the caller if the charge is that of a reservation
	DryRun   bool    // set by the caller if the counter is that of a rule in DryRun, which has keys of its own
	of       *Ledger
	id       uint64 // of the charge; unique in the ledger
}

// Fill records what a counter charged a call that passed, in r, which must be zero. of will
// remember its refunds. Slots are not refunded, so there is no receipt for them.
func (r *Receipt) Fill(of *Ledger, counter *algorithm.Counter, v *algorithm.Verdict, id uint64) {
	if counter.Limit.Properties().Slots {
		return
	}
	r.FillPlain(of, counter, v, id)
	r.mark = counter.Mark
	if v.From == algorithm.FromLocal {
		r.local = counter.LocalShare
	}
}

// FillPlain is Fill for a counter without slots and without a Mark, charged by the store.
func (r *Receipt) FillPlain(of *Ledger, counter *algorithm.Counter, v *algorithm.Verdict, id uint64) {
	r.Limit, r.Cost, r.at, r.position, r.of, r.id = counter.Limit, v.Taken, v.At, v.Position, of, id
}

// Of reports whether a ledger remembers the refunds of the charge.
func (r *Receipt) Of(l *Ledger) bool { return r.of == l }
