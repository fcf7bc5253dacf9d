package inflight

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
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
	used    int64 // if it is settled

	answered  bool  // the settlement was carried out, for certain
	above     int64 // if it was, how many permits exceed the bound of the debt
	uncounted bool  // the outcome of the call is that it does not count
}

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
// has ended. It can be repeated only after an error that says that nothing was changed. After any
// other error, the counters hold the estimate or what was used.
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
			a.Used = r.used
		default:
			a.Status = algorithm.BillChanged
			above, failed := r.settle(context.WithoutCancel(ctx), e.keeper.store, used)
			a.Above, err = max(a.Above, above), errors.Join(err, failed)
		}
	}
	return a, err
}

// settle returns how many permits exceed the bound of the debt of some counter.
func (r *estimate) settle(ctx context.Context, store Store, used int64) (above int64, err error) {
	r.settled, r.used = true, used
	if err = r.giveBack(ctx, store, used); err == nil {
		above, err = r.chargeRest(ctx, store, used)
	}
	switch {
	case err == nil:
		if r.answered, r.above = true, above; !r.counted() {
			r.countCosts()
		}
	case err != nil && !failure.MayHaveActed(err):
		r.settled = false
	}
	return above, err
}

// giveBack gives back what was charged above what was used.
func (r *estimate) giveBack(ctx context.Context, store Store, used int64) (err error) {
	var back []algorithm.Charge
	for i := range r.charges {
		if charge := r.charges[i].Charge; r.charges[i].above(used) > 0 {
			charge.Cost = r.charges[i].above(used)
			back = append(back, charge)
		}
	}
	if len(back) > 0 {
		err = store.GiveBack(ctx, back)
	}
	if err != nil && !failure.MayHaveActed(err) {
		return err
	}
	for i := range r.charges { // what may have been given back is not given back again
		if more := r.charges[i].above(used); more > 0 {
			r.charges[i].Cost -= more
			r.charges[i].Given += more
		}
	}
	return err
}

// chargeRest charges what was used above what was charged.
func (r *estimate) chargeRest(ctx context.Context, store Store, used int64) (above int64, err error) {
	var counters []algorithm.Counter
	var lower []countedCharge
	for _, c := range r.charges {
		if more := min(used-c.Cost, algorithm.MaxInUse+1); more > 0 {
			counters = append(counters, algorithm.Counter{Key: c.Key, Limit: c.Limit, Cost: more, LocalShare: c.LocalShare})
			lower = append(lower, c)
		}
	}
	if len(counters) == 0 {
		return 0, nil
	}
	verdicts := make([]algorithm.Verdict, len(counters))
	store.Charge(ctx, counters, r.share, verdicts)
	for i, c := range lower {
		if verdicts[i].Err != nil {
			return 0, verdicts[i].Err // they are on one server, so none was charged
		}
		above = max(above, used-c.Cost-verdicts[i].Taken)
		if c.charged != nil {
			c.charged(&counters[i], &verdicts[i])
		}
		charge := counters[i].Charged(&verdicts[i])
		charge.InDebt = true
		r.charges = append(r.charges, countedCharge{Charge: charge, count: c.count, again: true})
	}
	return above, nil
}

// countCosts counts what the estimate has become.
func (r *estimate) countCosts() {
	switch {
	case r.charged == 0:
	case r.uncounted:
		r.costs.Settle(r.charged, 0)
	case r.answered:
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
		for _, c := range e.rules[i].charges {
			if c.uncounted = &e.rules[i].uncounted; c.count != nil {
				counted = append(counted, c)
			}
		}
	}
	return counted
}
