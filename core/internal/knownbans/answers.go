package knownbans

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/clock"
)

// Observe updates the table with the store's answers to a question that was sent at the given time.
// They say which bans and blocks are in force and which are not.
func (t *Table) Observe(counters []algorithm.Counter, verdicts []algorithm.Verdict, sent int64) {
	for i := range counters {
		if c := &counters[i]; c.Override != nil || c.Limit.Kind == algorithm.Ban { // few have either
			t.ObserveOne(c, &verdicts[i], sent)
		}
	}
}

// ObserveOne is Observe for one counter.
func (t *Table) ObserveOne(c *algorithm.Counter, v *algorithm.Verdict, sent int64) {
	switch q := c.Override; {
	case v.Err != nil || v.Ended != nil:
	case q == nil && c.Limit.Kind == algorithm.Ban && v.From == algorithm.FromStore:
		t.observe(c.Key, v.RetryAfter, v.At, sent, c.Limit.BansByHand())
	case q != nil && c.Own && q.Blocks():
		t.observe(q.Key, q.Found.Lasts(v.At), v.At, sent, true)
	case q != nil && c.Own:
		t.observe(q.Key, 0, v.At, sent, true)
	}
}

// observe records how long a ban or block lasts; 0 means that there is none.
func (t *Table) observe(key []byte, lasts, at, sent int64, byOperator bool) {
	switch {
	case lasts > 0 && t.isConfirmed(key, lasts):
	case lasts > 0:
		t.SawStoreTime(at)
		t.RememberAsOf(sent, key, lasts, byOperator)
	case t.count.Load() > 0:
		t.ForgetAsOf(sent, key)
	}
}

// isConfirmed reports whether a ban with about the same end was confirmed just before, so that not
// every call of a subject has to write to the table.
func (t *Table) isConfirmed(key []byte, lasts int64) bool {
	e, known := t.find(key)
	if !known || t.clock.Now()-e.since >= int64(clock.MaxAge) {
		return false
	}
	later := t.endOf(lasts) - e.ends
	return max(later, -later) < clock.MaxAge.Microseconds()
}

// StandIn answers for the counters that the store did not answer for, if the table has a ban or a
// block that decides them. The verdicts are the same as if the store had refused the call for it, so a
// block of one rule leaves no other counter undecided.
func (t *Table) StandIn(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	if t.count.Load() == 0 {
		return
	}
	for i := range verdicts {
		if verdicts[i].Ended != nil { // the caller has left
			return
		}
	}
	if t.block(counters, verdicts) {
		for i := range verdicts {
			t.skip(&verdicts[i])
		}
		return
	}
	for i := range counters {
		if c := &counters[i]; c.Limit.Kind == algorithm.Ban && verdicts[i].Err != nil {
			t.ban(c, i, verdicts)
		}
	}
}

// block answers for the counters of rules that have blocked their subject. It reports whether a
// block refuses the call.
func (t *Table) block(counters []algorithm.Counter, verdicts []algorithm.Verdict) (refused bool) {
	for i := range counters {
		c, v := &counters[i], &verdicts[i]
		if c.Override == nil || v.Err == nil {
			continue
		}
		lasts := t.Lasts(c.Override.Key)
		if lasts == 0 {
			continue
		}
		now := t.StoreTime()
		c.Override.Answer(algorithm.BlockedFor(lasts, now))
		t.skip(v)
		if c.Own {
			*v = c.Override.Verdict(now)
			v.From = algorithm.FromRefusal
		}
		refused = refused || !c.Lenient
	}
	return refused
}

// ban answers for the ban at an index and for the counters that it watches. The first of these
// reports the ban. See Hold.
func (t *Table) ban(c *algorithm.Counter, at int, verdicts []algorithm.Verdict) {
	lasts := t.Lasts(c.Key)
	if lasts == 0 {
		return
	}
	verdicts[at] = t.refusal(lasts)
	Hold(c, at, verdicts)
}

// Hold applies the ban at an index, which is in force, to the counters that it watches, as far as the
// store did not answer for them.
func Hold(c *algorithm.Counter, at int, verdicts []algorithm.Verdict) {
	ban := verdicts[at]
	for n, i := range c.Watched {
		switch v := &verdicts[i]; {
		case v.Err == nil:
		case n == 0:
			*v = ban
		default:
			*v = algorithm.Verdict{At: ban.At, From: algorithm.FromNobody}
		}
	}
}

func (t *Table) refusal(lasts int64) algorithm.Verdict {
	return algorithm.Verdict{At: t.StoreTime(), RetryAfter: lasts, From: algorithm.FromRefusal}
}

// skip makes a missing verdict that of a counter which takes no part in the decision.
func (t *Table) skip(v *algorithm.Verdict) {
	if v.Err != nil {
		*v = algorithm.Verdict{At: t.StoreTime(), From: algorithm.FromNobody}
	}
}
