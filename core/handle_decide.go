package core

import (
	"context"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// directCall is the state of one call of a handle while it is decided. It comes from a pool. A
// Decision is large, so it is written once, where the caller finds it.
type directCall struct {
	limiter  *Limiter
	counters []algorithm.Counter
	verdicts []algorithm.Verdict
	id       uint64      // of its first charge; unique as long as this object lives in the pool
	place    tally.Place // where its decisions are counted
	here     hereCall
	query    algorithm.OverrideQuery // for the override of the subject, if the handle may have some
	inForce  Limit                   // what that makes of the handle's own limit
}

func newDirectCall(l *Limiter) *directCall {
	c := &directCall{limiter: l, id: l.callIDs.Add(1) << 32, place: l.tallies.NewPlace()}
	c.here.counter.Key = make([]byte, 0, rediskey.MaxLen)
	return c
}

// decide decides a call that is in order, and counts the decision.
func (c *directCall) decide(ctx context.Context, q *handleCall, d *Decision) error {
	if q.unlimited() && q.overrideKey == "" {
		c.letPass(q, d)
		return nil
	}
	if err := c.form(q); err != nil {
		return err
	}
	if q.upTo && q.n > 0 {
		c.limiter.store.DecideUpTo(ctx, c.counters, c.verdicts)
		q.n = int(c.counters[0].Cost) // the number charged
	} else {
		c.limiter.store.Decide(ctx, c.counters, q.charge, c.verdicts)
	}
	if q.mark != "" {
		c.limiter.inFlight.DropDoubtfulSlots(c.counters, c.verdicts)
	}
	return c.answerObeying(d, q, algorithm.ToDecide)
}

// answerObeying is answer, after what the override of the subject says.
func (c *directCall) answerObeying(d *Decision, q *handleCall, request algorithm.Request) error {
	if q.overrideKey != "" {
		switch lifted, err := c.obeyOverride(q, request); {
		case err != nil:
			return err
		case lifted:
			c.letPass(q, d)
			return nil
		}
	}
	return c.answer(d, q)
}

// letPass answers a call without a limit, and counts the decision.
func (c *directCall) letPass(q *handleCall, d *Decision) {
	q.letPass(d)
	if q.charge {
		c.count(q, d, tally.Bound)
	}
}

// form builds the counters of a call.
func (c *directCall) form(q *handleCall) error {
	if q.overrideKey != "" {
		c.formOverridden(q)
		return nil
	}
	if q.upTo {
		q.n = q.most()
	}
	for i := range q.limits {
		limit := q.limit(i)
		if int64(q.n) > limit.compiled.Max {
			return fmt.Errorf("%w: %d of %v", ErrCostExceedsLimit, q.n, limit.limit)
		}
		c.formOne(q, i, limit)
	}
	return nil
}

func (c *directCall) formOne(q *handleCall, i int, limit *preparedLimit) {
	counter := c.addCounter()
	counter.Key = q.appendKey(counter.Key, i)
	counter.Limit, counter.Cost, counter.Mark = &limit.compiled, int64(q.n), q.mark
	counter.Required, counter.LocalShare = q.policy.mode == storeUnset, 0
	q.policy.apply(counter)
}

// addCounter makes room for one more counter and its verdict. Its Key keeps the room of an earlier
// call's.
func (c *directCall) addCounter() *algorithm.Counter {
	if len(c.counters) < cap(c.counters) {
		c.counters = c.counters[:len(c.counters)+1]
	} else {
		c.counters = append(c.counters, algorithm.Counter{Key: make([]byte, 0, rediskey.MaxLen)})
	}
	c.verdicts = append(c.verdicts, algorithm.Verdict{})
	counter := &c.counters[len(c.counters)-1]
	counter.Key = counter.Key[:0]
	return counter
}

// answer stores the answer in d, which is the zero Decision, and counts it.
func (c *directCall) answer(d *Decision, q *handleCall) error {
	at, fits := 0, allFit(c.verdicts)
	passed := fits
	if !fits {
		if err := c.failure(q); err != nil {
			return err
		}
		passed = algorithm.Passes(c.counters, c.verdicts)
	}
	if len(c.counters) > 1 {
		at = c.binding()
	}
	usual := fits && c.verdicts[at].From == algorithm.FromStore
	traits := tally.Bound
	if passed && c.isNear() {
		traits |= tally.Near
		if q.charge {
			c.noteNear(q)
		}
	}
	if usual && q.charge {
		q.tally.CountUsual(traits, &c.place)
	}
	c.decision(d, at, q, passed)
	if len(c.counters) > 1 {
		c.decisions(d, at, q, passed)
	}
	if !usual && q.charge {
		c.count(q, d, traits)
		c.noteRefusal(q, at)
	}
	return nil
}

// count counts the decision on a call.
func (c *directCall) count(q *handleCall, d *Decision, traits tally.Traits) {
	q.tally.Count(string(d.Reason), string(d.Source), traits, &c.place)
}

// isNear reports whether a call that passed left few permits of a limit.
func (c *directCall) isNear() bool {
	for i := range c.counters {
		if isNear(&c.counters[i], &c.verdicts[i]) {
			return true
		}
	}
	return false
}

// binding returns the place of the limit that binds the call most.
func (c *directCall) binding() (at int) {
	for i := range c.verdicts {
		if bindsMore(&c.verdicts[i], &c.verdicts[at], c.refuses(i), c.refuses(at)) {
			at = i
		}
	}
	return at
}

// decisions lists the decision on each limit in d.All, the binding one first.
func (c *directCall) decisions(d *Decision, binding int, q *handleCall, passed bool) {
	all := make([]Decision, 1, len(c.counters))
	all[0] = *d
	for i := range c.counters {
		if i != binding {
			all = append(all, Decision{})
			c.decision(&all[len(all)-1], i, q, passed)
		}
	}
	d.All = all
}

// decision fills the zero Decision d with the answer for the counter at i.
func (c *directCall) decision(d *Decision, i int, q *handleCall, passed bool) {
	v := &c.verdicts[i]
	d.fill(q.name, c.limit(q, i), v, sourceOf(v, c.limiter.source))
	d.Key = q.subject
	switch {
	case v.Err == nil && q.overrideKey != "" && c.query.Blocks():
		d.Reason = Blocked
	case v.Err != nil:
		d.Source = FromNobody
		if d.Allowed, d.Reason = true, StoreFailOpen; c.refuses(i) {
			d.Allowed, d.Reason = false, StoreFailClosed
		}
	case q.charge && passed:
		d.receipt.Fill(&c.limiter.refunds, &c.counters[i], v, c.id+uint64(i))
	}
}

func (c *directCall) refuses(i int) bool { return c.counters[i].Refuses(&c.verdicts[i]) }

// failure returns the error of a call whose caller's context has ended, or for which the store did
// not answer and the handle has no store policy; otherwise nil.
func (c *directCall) failure(q *handleCall) error {
	for i := range c.verdicts {
		if c.verdicts[i].Ended != nil {
			return c.verdicts[i].Ended
		}
	}
	for i := range c.verdicts {
		err := c.verdicts[i].Failure()
		switch {
		case err == nil:
		case q.policy.mode == storeUnset:
			return c.limiter.failures.errorOf(q.name, err)
		default:
			c.limiter.failures.failed(q.name, q.policy.String(), err)
			return nil
		}
	}
	return nil
}

// close puts the call back into the pool.
func (c *directCall) close() {
	c.id += 1 + uint64(len(c.counters))
	if c.query.Limit != nil {
		c.forgetOverride()
	}
	c.counters, c.verdicts = c.counters[:0], c.verdicts[:0]
	c.limiter.directs.Put(c)
}
