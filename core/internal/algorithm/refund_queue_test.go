package algorithm_test

import (
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// queue models a bucket of one rate by the permits in use, oldest first. They come back from the front,
// by themselves and by refunds.
type queue struct {
	limit *algorithm.Limit
	at    int64 // the tick up to which they came back by themselves
	held  []heldUnits
}

// heldUnits are what is in use of one charge.
type heldUnits struct{ charge, units int64 }

// refill drops what came back until now.
func (q *queue) refill(now int64) {
	at := now / q.limit.Tick
	if at > q.at {
		q.drop((at - q.at) * q.limit.Refill)
	}
	q.at = at
}

// drop drops units from the front.
func (q *queue) drop(units int64) {
	for len(q.held) > 0 && units >= q.held[0].units {
		units -= q.held[0].units
		q.held = q.held[1:]
	}
	if len(q.held) > 0 {
		q.held[0].units -= units
	}
}

func sumOf(held []heldUnits) (units int64) {
	for _, h := range held {
		units += h.units
	}
	return units
}

// answer decides a cost.
func (q *queue) answer(now, cost int64) algorithm.Verdict {
	q.refill(now)
	l, used := q.limit, sumOf(q.held)
	after := func(units int64) int64 {
		if units <= 0 {
			return 0
		}
		return (q.at+(units+l.Refill-1)/l.Refill)*l.Tick - now
	}
	return algorithm.Verdict{
		At: now, Remaining: max(0, l.Max-(used+l.Permit-1)/l.Permit), ResetAfter: after(used), RetryAfter: after(used + (cost-l.Max)*l.Permit),
	}
}

func (q *queue) charge(now, cost, id int64) {
	q.refill(now)
	q.held = append(q.held, heldUnits{id, cost * q.limit.Permit})
}

// refund gives back permits of a charge: as much from the front as is in use up to the charge.
func (q *queue) refund(now, permits, id int64) {
	q.refill(now)
	if at := slices.IndexFunc(q.held, func(h heldUnits) bool { return h.charge == id }); at >= 0 {
		q.drop(min(permits*q.limit.Permit, sumOf(q.held[:at+1])))
	}
}

// leave gives back a whole turn. If callers wait, it gives back only the last one.
func (q *queue) leave(now, id int64) (left bool) {
	q.refill(now)
	last := len(q.held) - 1
	if last < 0 || sumOf(q.held) <= q.limit.Max*q.limit.Permit {
		return false
	}
	if q.held[last].charge == id {
		q.held = q.held[:last]
	}
	return true
}
