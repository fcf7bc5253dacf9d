package inflight

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// ErrEnded means that the call is over, so that its estimates stay.
var ErrEnded = errors.New("the reply of the call has ended")

// Estimates are what the rules of one call charged before the cost was known. The call's handler
// settles them, one rule at a time. It is safe for concurrent use.
type Estimates struct {
	keeper *Keeper

	mu    sync.Mutex
	rules []estimate
	ended bool
}

// Costs counts what becomes of estimates.
type Costs interface {
	Open(estimate int64)
	Settle(estimate, used int64)
	Miss()                 // settled too late
	Exceed(permits uint64) // above the bound of the debt
}

// estimate is what one rule charged.
type estimate struct {
	rule    string
	share   float64 // bounds the debt: see algorithm.Limit.Debt
	costs   Costs
	charged int64           // to the first counter
	charges []countedCharge // on each counter; none if the rule did not count the call
	settled bool
	used    int64 // if it is settled, or tried
	above   int64 // if it is settled, how many permits exceed the bound of the debt

	// A step of the settlement whose reply was lost is tried again unchanged, with the same record, so
	// that the store carries it out only once.
	lost   error // the error of its first attempt; nil: no step may have been carried out
	record []byte
	began  time.Time // when it was first tried

	uncounted bool // the outcome of the call is that it does not count
}

// repeatable is how long after its first attempt a step is tried again. The store keeps its record
// for longer, in case its clock is adjusted.
const repeatable = algorithm.RecordLife / 2 * time.Microsecond

// NewEstimates returns Estimates of no rules.
func (k *Keeper) NewEstimates() *Estimates { return &Estimates{keeper: k} }

// AddRule adds a rule that charges nothing yet. share bounds the debt that settling it can leave.
func (e *Estimates) AddRule(name string, share float64, costs Costs) {
	e.rules = append(e.rules, estimate{rule: name, share: share, costs: costs})
}

// Add adds a charge of the rule that was added last. least is the part of it that is no estimate,
// because another rule charged that. If count is not nil, the charge is given back unless count
// returns true for the outcome of the call. If charged is not nil, it receives what the counter is charged
// later.
func (e *Estimates) Add(charge algorithm.Charge, least int64, count func(status int) bool, charged func(*algorithm.Counter, *algorithm.Verdict)) {
	charge.Key, charge.InDebt = slices.Clone(charge.Key), true
	r := &e.rules[len(e.rules)-1]
	if len(r.charges) == 0 {
		r.charged = charge.Cost
		r.costs.Open(charge.Cost)
	}
	r.charges = append(r.charges, countedCharge{Charge: charge, least: min(least, charge.Cost), count: count, charged: charged})
}

// Rules returns the names of the rules.
func (e *Estimates) Rules() (names []string) {
	for i := range e.rules {
		names = append(names, e.rules[i].rule)
	}
	return names
}

// Settle makes the counters of a rule hold what was used in place of the estimate, even if the context
// has ended. It can be repeated after an error, for a while. If something may have been changed,
// the number of the first attempt stays. Until Settle succeeds, the counters hold the estimate or
// that number.
func (e *Estimates) Settle(ctx context.Context, rule string, used int64) (a algorithm.BillAnswer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.Status = algorithm.BillSettled // unless some rule of this name was not settled yet
	for i := range e.rules {
		switch r := &e.rules[i]; {
		case r.rule != rule:
		case e.ended:
			r.costs.Miss()
			return algorithm.BillAnswer{}, ErrEnded
		case r.settled:
			a.Used, a.Above = r.used, max(a.Above, r.above)
		case r.lost != nil && time.Since(r.began) > repeatable:
			err = errors.Join(err, r.lost)
		default:
			if r.lost == nil {
				r.used = used
			}
			if err = errors.Join(err, r.settle(context.WithoutCancel(ctx), e.keeper.store)); r.used != used {
				a.Used = r.used
				continue
			}
			a.Status, a.Above = algorithm.BillChanged, max(a.Above, r.above)
		}
	}
	return a, err
}

// settle makes the counters hold r.used.
func (r *estimate) settle(ctx context.Context, store Store) (err error) {
	if err = r.giveBack(ctx, store); err == nil {
		err = r.chargeRest(ctx, store)
	}
	if err == nil {
		if r.settled = true; !r.counted() {
			r.countCosts()
		}
	}
	return err
}

// try takes a step of the settlement, with a record.
func (r *estimate) try(step func(record []byte) error) error {
	if r.lost == nil {
		r.record, r.began = rediskey.Record(r.charges[0].Key), time.Now()
	}
	err := step(r.record)
	switch {
	case err == nil:
		r.lost = nil
	case r.lost == nil && failure.MayHaveActed(err):
		r.lost = err
	}
	return err
}

// giveBack gives back what was charged above what was used.
func (r *estimate) giveBack(ctx context.Context, store Store) error {
	var back []algorithm.Charge
	for i := range r.charges {
		if more := r.charges[i].above(r.used); more > 0 {
			back = append(back, r.charges[i].Part(more))
		}
	}
	if len(back) == 0 {
		return nil
	}
	err := r.try(func(record []byte) error {
		for i := range back {
			back[i].Record = record
		}
		return store.Change(ctx, &algorithm.Change{Charges: back})
	})
	if err == nil {
		r.givenBack()
	}
	return err
}

// givenBack notes that what was charged above what was used was given back, or may have been.
func (r *estimate) givenBack() {
	for i := range r.charges {
		if more := r.charges[i].above(r.used); more > 0 {
			r.charges[i].Charge = r.charges[i].Part(r.charges[i].Cost - more)
		}
	}
}

// chargeRest charges what was used above what was charged.
func (r *estimate) chargeRest(ctx context.Context, store Store) error {
	var counters []algorithm.Counter
	var lower []countedCharge
	for _, c := range r.charges {
		if more := min(r.used-c.Cost, algorithm.MaxInUse+1); more > 0 {
			counters = append(counters, algorithm.Counter{Key: c.Key, Limit: c.Limit, Cost: more, LocalShare: c.LocalShare})
			lower = append(lower, c)
		}
	}
	if len(counters) == 0 {
		return nil
	}
	op := algorithm.NewOp(algorithm.InDebt, counters...)
	err := r.try(func(record []byte) error {
		op.Share, op.Record = r.share, record
		store.Do(ctx, op)
		for i := range op.Verdicts {
			if err := op.Verdicts[i].Err; err != nil {
				return err // they are on one server, so none was charged
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range lower {
		r.above = max(r.above, r.used-c.Cost-op.Verdicts[i].Taken)
		if c.charged != nil {
			c.charged(&counters[i], &op.Verdicts[i])
		}
		charge := counters[i].Charged(&op.Verdicts[i])
		charge.InDebt = true
		r.charges = append(r.charges, countedCharge{Charge: charge, count: c.count, again: true})
	}
	return nil
}

// countCosts counts what the estimate has become.
func (r *estimate) countCosts() {
	switch {
	case r.charged == 0:
	case r.uncounted:
		r.costs.Settle(r.charged, 0)
	case r.settled:
		r.costs.Settle(r.charged, r.used)
		r.costs.Exceed(uint64(r.above))
	}
}

// counted reports whether the outcome of the call determines what is given back.
func (r *estimate) counted() bool {
	return slices.ContainsFunc(r.charges, func(c countedCharge) bool { return c.count != nil })
}

// counted reports whether the outcome of the call determines what is given back.
func (e *Estimates) counted() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.rules, func(r estimate) bool { return r.counted() })
}

// countCosts counts what the estimates whose fate the outcome decided have become.
func (e *Estimates) countCosts() {
	if e == nil {
		return
	}
	for i := range e.rules { // nobody changes them after end
		if r := &e.rules[i]; r.counted() {
			r.countCosts()
		}
	}
}

// end ends the settling, and returns the charges that are kept or given back by the outcome.
func (e *Estimates) end() (counted []countedCharge) {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	for i := range e.rules {
		if e.rules[i].lost != nil {
			e.rules[i].givenBack()
		}
		for _, c := range e.rules[i].charges {
			if c.uncounted = &e.rules[i].uncounted; c.count != nil {
				counted = append(counted, c)
			}
		}
	}
	return counted
}
