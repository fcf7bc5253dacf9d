package linearizable

import (
	"github.com/anishathalye/porcupine"

	"github.com/accesslimit/accesslimit/core"
)

// action is what a call does to the counter of its subject.
type action string

const (
	allow     action = "AllowN"
	allowUpTo action = "AllowUpTo"
	peek      action = "Peek"
	charge    action = "Charge"
	refund    action = "Refund"
	hold      action = "Hold"
	release   action = "release"
	open      action = "Open"
	add       action = "Add"
	settle    action = "Settle"
)

// call is the input of an operation.
type call struct {
	do      action
	subject string
	n       int
	slot    int // which hold or bill this is, or which one is released or changed
}

// answer is the part of a Decision that does not depend on time.
type answer struct {
	allowed   bool
	granted   int  // of AllowUpTo
	above     bool // a charge exceeded the bound of the debt
	ended     bool // the bill was settled before
	remaining int  // unless nothing is said about it: Refund, release, Add, Settle, a repeated refusal
}

// outcome is the output of an operation.
type outcome struct {
	answer
	repeated bool // a refusal that the process remembered: permits may have been given back since
	unknown  bool // there is no answer, so the call takes effect at some time after it began, or never
}

// state is that of one counter. No permit comes back by itself while a test runs, so the same state
// serves every algorithm.
type state struct {
	used  int
	peak  int    // the largest used so far
	slots uint64 // a bit for each hold that has not been released
	bills [64]bill
}

// bill is a bill that was opened, or the zero bill.
type bill struct {
	charged int8 // or what it was settled at
	settled bool
	above   bool // the settlement exceeded the bound of the debt
}

// apply is the sequential specification: it returns the state after a call, and the call's answer.
func (c call) apply(s state, most int) (state, answer) {
	a, left := answer{allowed: true}, most-s.used
	switch c.do {
	case allow, peek:
		a.allowed = c.n <= left
	case allowUpTo:
		c.n = max(0, min(c.n, left))
		a.allowed, a.granted = c.n > 0, c.n
	case charge: // the debt is at most another limit
		a.above = c.n > left+most
		c.n = min(c.n, left+most)
	case refund:
		s.used -= c.n
		return s, a
	case hold:
		if a.allowed = left > 0; a.allowed {
			s.slots |= 1 << c.slot
		}
	case open:
		if a.allowed = c.n <= left; a.allowed {
			s.bills[c.slot].charged = int8(c.n)
		}
	case add, settle:
		return c.change(s, left+most)
	case release:
		if s.slots&(1<<c.slot) == 0 {
			return s, a
		}
		return state{used: s.used - 1, slots: s.slots &^ (1 << c.slot)}, a
	}
	if a.allowed && c.do != peek {
		s.used += c.n
	}
	a.remaining = max(0, most-s.used)
	return s, a
}

// change applies a change of a bill. room is how much can still be charged, in debt.
func (c call) change(s state, room int) (state, answer) {
	b := &s.bills[c.slot]
	if b.settled {
		again := c.do == settle && int(b.charged) == c.n
		return s, answer{allowed: true, ended: !again, above: again && b.above}
	}
	more := c.n
	if c.do == settle {
		more -= int(b.charged)
	}
	taken := min(more, room)
	s.used += taken
	b.charged += int8(taken)
	if c.do == settle {
		*b = bill{int8(c.n), true, taken < more}
	}
	return s, answer{allowed: true, above: taken < more}
}

// step returns the states that a call with this outcome can lead to.
func (c call) step(s state, o outcome, limit core.Limit) (after []any) {
	most := max(limit.Max, limit.Burst)
	next, want := c.apply(s, most)
	if o.repeated {
		then := s
		then.used = max(s.peak, s.used)
		_, want = c.apply(then, most)
		next, want.remaining = s, o.remaining
	}
	next.peak = max(s.peak, next.used)
	switch {
	case o.unknown:
		after = []any{s, next}
	case o.answer == want:
		after = []any{next}
	}
	if len(after) > 0 && limit.Algorithm == core.TokenBucket {
		for given := s.used - next.used; given > 0; given-- { // a bucket may lose what is given back
			next.used++
			after = append(after, next)
		}
	}
	return after
}

// model returns the model of one counter.
func model(limit core.Limit) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, input, output any) []any { return input.(call).step(s.(state), output.(outcome), limit) },
	}
	return m.ToModel()
}
