// Package fallback counts in this process while the shared store does not answer, for the rules
// with the policy CountLocally.
//
// A process counts from zero, by its share of the limit. Its counters stay until their time is
// over, so a store that fails and recovers every second does not admit more.
package fallback

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
)

// Counters are the counters of this process. They are safe for concurrent use.
type Counters struct {
	*memstore.Store
	shares shares
}

// New returns counters for at most maxKeys keys.
func New(maxKeys int) *Counters { return &Counters{Store: memstore.New(maxKeys, nil)} }

// countsHere reports whether a counter is counted here because the store failed for it. A rule that
// refuses calls while the store fails is not counted here.
func countsHere(c *algorithm.Counter, v *algorithm.Verdict) bool {
	return v.Err != nil && c.LocalShare > 0 && !c.Required
}

// AnyCountsHere reports whether any of a call's counters is to be counted here.
func AnyCountsHere(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if countsHere(&counters[i], &verdicts[i]) {
			return true
		}
	}
	return false
}

// StandIn answers for the counters that the shared store could not answer for. If it refuses a call that
// other servers let pass, it returns what they charged, which must be given back.
func (f *Counters) StandIn(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) (charged []algorithm.Charge) {
	local, indexes, othersPass := f.subset(counters, verdicts)
	if len(local) == 0 {
		return nil
	}
	answers := make([]algorithm.Verdict, len(local))
	f.Store.Decide(ctx, local, charge && othersPass, answers)
	for n, i := range indexes {
		verdicts[i] = inPlaceOf(&verdicts[i], answers[n])
	}
	if !charge || !othersPass || algorithm.Passes(local, answers) {
		return nil
	}
	return Uncharge(counters, verdicts)
}

// StandInUpTo charges as much as fits here if the shared store could not answer. All counters of
// the call are on one server.
func (f *Counters) StandInUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	local, indexes, _ := f.subset(counters, verdicts)
	if len(local) < len(counters) {
		return
	}
	algorithm.SetCost(local, counters[0].Cost)
	answers := make([]algorithm.Verdict, len(local))
	f.Store.DecideUpTo(ctx, local, answers)
	for n, i := range indexes {
		verdicts[i] = inPlaceOf(&verdicts[i], answers[n])
	}
	algorithm.SetCost(counters, local[0].Cost)
}

// StandInCharge charges the counters here, whether their costs fit or not, if the shared store could
// not answer for any of them.
func (f *Counters) StandInCharge(ctx context.Context, counters []algorithm.Counter, share float64, verdicts []algorithm.Verdict) {
	local, indexes, _ := f.subset(counters, verdicts)
	answers := make([]algorithm.Verdict, len(local))
	for n, i := range indexes {
		local[n].Cost = counters[i].Cost
	}
	f.Store.Charge(ctx, local, share, nil, answers)
	for n, i := range indexes {
		verdicts[i] = inPlaceOf(&verdicts[i], answers[n])
	}
}

// subset returns the counters of a call that are counted here, and their indexes in the call. It
// reports whether the other counters let the call pass. Nothing is counted for a caller who has left.
func (f *Counters) subset(counters []algorithm.Counter, verdicts []algorithm.Verdict) (local []algorithm.Counter, indexes []int, othersPass bool) {
	othersPass = true
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case v.Ended != nil:
			return nil, nil, false
		case countsHere(c, v):
			indexes = append(indexes, i)
			local = append(local, f.counter(c))
		default:
			othersPass = othersPass && !c.Refuses(v)
		}
	}
	return local, indexes, othersPass
}

// StandInReserve takes a turn at a bucket if the shared store could not answer for it.
func (f *Counters) StandInReserve(ctx context.Context, c *algorithm.Counter, patience int64, v *algorithm.Verdict) {
	if !countsHere(c, v) {
		return
	}
	local := f.counter(c)
	*v = inPlaceOf(v, f.Store.Reserve(ctx, &local, patience))
}

// inPlaceOf returns the answer of this process in place of the failure of the shared store.
func inPlaceOf(failed *algorithm.Verdict, answer algorithm.Verdict) algorithm.Verdict {
	answer.From, answer.Instead = algorithm.FromLocal, failed.Err
	return answer
}

// Uncharge returns what the shared store charged for a call that is refused here, and changes the
// verdicts as if nothing had been charged.
func Uncharge(counters []algorithm.Counter, verdicts []algorithm.Verdict) (charged []algorithm.Charge) {
	for i := range counters {
		if c := counters[i].Charged(&verdicts[i]); c.Cost > 0 && verdicts[i].From != algorithm.FromLocal {
			c.Key = append([]byte(nil), c.Key...)
			charged = append(charged, c)
			counters[i].Uncharge(&verdicts[i])
		}
	}
	return charged
}

// counter returns a counter of the call as it is counted here. A cost above the share of the limit
// takes the whole share.
func (f *Counters) counter(c *algorithm.Counter) algorithm.Counter {
	local := *c
	local.Lease = 0
	local.Limit = f.shares.of(c.Limit, c.LocalShare)
	local.Cost = min(c.Cost, local.Limit.Max)
	return local
}

// Split separates the charges that were made here from the others. The local charges get the limits
// that they were made with.
func (f *Counters) Split(charges []algorithm.Charge) (local, shared []algorithm.Charge) {
	if !anyLocal(charges) {
		return nil, charges
	}
	for _, c := range charges {
		if c.LocalShare == 0 {
			shared = append(shared, c)
			continue
		}
		c.Limit = f.shares.of(c.Limit, c.LocalShare)
		local = append(local, c)
	}
	return local, shared
}

func anyLocal(charges []algorithm.Charge) bool {
	for i := range charges {
		if charges[i].LocalShare != 0 {
			return true
		}
	}
	return false
}
