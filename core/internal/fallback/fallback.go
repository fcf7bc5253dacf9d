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
func (f *Counters) StandIn(ctx context.Context, op *algorithm.Op) (charged []algorithm.Charge) {
	local, indexes, othersPass := f.subset(op)
	if len(indexes) == 0 {
		return nil
	}
	if !othersPass {
		local.Mode = algorithm.Looks
	}
	f.Store.Do(ctx, local)
	for n, i := range indexes {
		op.Verdicts[i] = inPlaceOf(&op.Verdicts[i], local.Verdicts[n])
	}
	switch {
	case op.Mode == algorithm.UpTo:
		algorithm.SetCost(op.Counters, local.Counters[0].Cost)
	case local.Mode == algorithm.AllOrNone && !algorithm.Passes(local.Counters, local.Verdicts):
		return Uncharge(op.Counters, op.Verdicts)
	}
	return nil
}

// subset returns an op on the counters that are counted here, and their indexes in the call. It
// reports whether the other counters let the call pass. Nothing is counted for a caller who has left.
func (f *Counters) subset(op *algorithm.Op) (local *algorithm.Op, indexes []int, othersPass bool) {
	local, othersPass = &algorithm.Op{Mode: op.Mode, Calls: 1, Share: op.Share, Patience: op.Patience}, true
	for i := range op.Counters {
		c, v := &op.Counters[i], &op.Verdicts[i]
		switch {
		case v.Ended != nil:
			return nil, nil, false
		case countsHere(c, v):
			indexes = append(indexes, i)
			local.Counters = append(local.Counters, f.counter(c, op.Mode))
		default:
			othersPass = othersPass && !c.Refuses(v)
		}
	}
	local.Verdicts = make([]algorithm.Verdict, len(indexes))
	return local, indexes, othersPass
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
// takes the whole share, unless it is charged in debt.
func (f *Counters) counter(c *algorithm.Counter, m algorithm.Mode) algorithm.Counter {
	local := *c
	local.Lease = 0
	local.Limit = f.shares.of(c.Limit, c.LocalShare)
	if m != algorithm.InDebt {
		local.Cost = min(c.Cost, local.Limit.Max)
	}
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
