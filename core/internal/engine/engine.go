// Package engine decides one call. It takes rules with their limits, the subject and the cost of
// the call by each of them, asks the store once, and returns whether the call passes, which
// limit binds it, and why. Middlewares, handles, the page of a caller's own limits and explanations are
// its callers, so they cannot disagree.
//
// The engine knows neither frameworks nor the functions of rules. It alone knows that a
// block or a ban goes before the limits, and hard rules before soft ones. Package marks knows which
// mark of a subject holds.
//
// From top to bottom, in the order in which the code runs:
//
//	Call.Add        add.go       makes the limits of a rule into counters, unless a mark refuses the call
//	  above         add.go       a cost that can never fit
//	  lenience      lenient.go   soft rules
//	  mergeLast     merge.go     two rules with one counter charge it once
//	Call.Decide     decide.go    asks the store for a verdict on each counter, by an algorithm.Op
//	  addMark       decide.go    or tells the block or the ban that refuses the call
//	Call.Binding    binding.go   the limit that binds the call
//	Call.Notice     notice.go    passes the decision of each rule to the observer
//	Call.Outcome    decide.go    what a limit decides, and why
package engine

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Engine holds what all calls of a limiter have in common.
type Engine struct {
	Store    Store
	Refusals Refusals // nil if refusals are not remembered
	// StandIn answers for the counters that the store did not answer for, whose verdicts say so. It is nil
	// if nothing can.
	StandIn func(ctx context.Context, op *algorithm.Op)
	// KeyHead is the beginning of all keys.
	KeyHead string
	Slots   Slots
	Turns   Store // carries out ops InTurn
}

// Slots names the holders of slots of Concurrency.
type Slots interface {
	// NewHolder returns a name for the slots of a call. No other call, of any process, has it.
	NewHolder() string
}

// Store has the counters. It never panics, and returns by its deadline.
type Store interface {
	// Do carries out an op. If its verdicts cannot be known, they say why.
	Do(ctx context.Context, op *algorithm.Op)
}

// Refusals remembers refusals of the store while they hold.
type Refusals interface {
	// Recall repeats a remembered refusal, and reports whether there is one that still holds. It
	// does not ask the store.
	Recall(op *algorithm.Op) bool
}

// Observer receives what is noticed while a call is decided, for counts, lists and logs. at is the
// index of a limit in the call.
type Observer interface {
	// Decided receives the decision of a rule, by the limit that represents it. See Call.Notice.
	Decided(at int, d Decided)
	// Charged receives the charge of a call that passed. warn are the fractions of the limit at
	// which its use is reported. The list must not be changed.
	Charged(at int, warn []float64)
	// StoreFailed receives, once for each rule, the reason why the store did not answer.
	StoreFailed(rule *Applied, err error)
}

// Unobserved is the Observer of calls that are only explained.
type Unobserved struct{}

func (Unobserved) Decided(int, Decided)        {}
func (Unobserved) Charged(int, []float64)      {}
func (Unobserved) StoreFailed(*Applied, error) {}
