// Package fallback counts in this process while the shared store does not answer, for the rules
// with the policy CountLocally.
//
// A process counts by its share of the limit, and from zero. Its counters stay until their time is
// over, so a store that fails and comes back every second admits no more because of that.
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

// New returns counters for at most so many keys.
func New(maxKeys int) *Counters { return &Counters{Store: memstore.New(maxKeys, nil)} }

// needed reports whether the store failed for a counter, so that it is counted here. A rule that
// refuses calls when the store fails needs no other answer.
func needed(c *algorithm.Counter, v *algorithm.Verdict) bool {
	return v.Err != nil && c.LocalShare > 0 && !c.Required
}

// Needed reports whether any of a call's counters is to be counted here.
func Needed(counters []algorithm.Counter, verdicts []algorithm.Verdict) bool {
	for i := range verdicts {
		if needed(&counters[i], &verdicts[i]) {
			return true
		}
	}
	return false
}

// StandIn answers for the counters that the shared store could not answer for. If it refuses a call
// that other servers let pass, it returns what they charged, to be given back.
func (f *Counters) StandIn(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) (charged []algorithm.Charge) {
	local, places, othersPass := f.part(counters, verdicts)
	if len(local) == 0 {
		return nil
	}
	answers := make([]algorithm.Verdict, len(local))
	f.Store.Decide(ctx, local, charge && othersPass, answers)
	for n, i := range places {
		verdicts[i] = inPlaceOf(&verdicts[i], answers[n])
	}
	if !charge || !othersPass || algorithm.Passes(local, answers) {
		return nil
	}
	return Uncharge(counters, verdicts)
}

// StandInUpTo charges as much as fits here if the shared store could not answer. All counters of
// the call are on one of its servers.
func (f *Counters) StandInUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	local, places, _ := f.part(counters, verdicts)
	if len(local) < len(counters) {
		return
	}
	algorithm.SetCost(local, counters[0].Cost)
	answers := make([]algorithm.Verdict, len(local))
	f.Store.DecideUpTo(ctx, local, answers)
	for n, i := range places {
		verdicts[i] = inPlaceOf(&verdicts[i], answers[n])
	}
	algorithm.SetCost(counters, local[0].Cost)
}

// part returns the counters of a call that are counted here, and their places in the call. It
// reports whether the others let the call pass. Nothing is counted for a caller who has left.
func (f *Counters) part(counters []algorithm.Counter, verdicts []algorithm.Verdict) (local []algorithm.Counter, places []int, othersPass bool) {
	othersPass = true
	algorithm.Obey(counters) // the largest cost is that of the rule's own limits, if no override was found
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		switch {
		case v.Ended != nil:
			return nil, nil, false
		case needed(c, v) && !c.InForce(): // as far as the overrides are known
			*v = algorithm.Verdict{From: algorithm.FromNobody, Instead: v.Err}
		case needed(c, v):
			places = append(places, i)
			local = append(local, f.counter(c))
		default:
			othersPass = othersPass && !c.Refuses(v)
		}
	}
	for i := range local { // a ban watches only those that are counted here, too
		local[i].Watched = local[i].WatchedIn(places)
	}
	return local, places, othersPass
}

// StandInReserve takes a turn at a bucket if the shared store could not answer for it.
func (f *Counters) StandInReserve(ctx context.Context, c *algorithm.Counter, patience int64, v *algorithm.Verdict) {
	if !needed(c, v) {
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

// Uncharge returns what the shared store charged for a call that is refused here. The verdicts are
// then as if nothing had been charged.
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

// counter returns a counter of the call as it is counted here: by the rule's own limit, because
// nobody knows of overrides here. A cost above the share of the limit takes all of the share.
func (f *Counters) counter(c *algorithm.Counter) algorithm.Counter {
	local := *c
	local.Lease, local.Override = 0, nil
	local.Limit = f.shares.of(c.Limit, c.LocalShare)
	local.Cost = min(c.Cost, local.Limit.Max)
	return local
}

// Split separates the charges that were made here, by the limits that they were made by, from the
// others.
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
