package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// directCall is the state of one call of a handle while it is decided. It comes from a pool. A
// Decision is large, so it is written once, where the caller finds it.
type directCall struct {
	decider
	here hereCall
}

// hereCall holds the counter of a call that chargeHere decides, and the verdict on it. Only the
// counter's Key, Limit and Cost are set.
type hereCall struct {
	counter algorithm.Counter
	verdict algorithm.Verdict
}

func newDirectCall(parts *callParts) *directCall {
	c := new(directCall)
	c.init(parts)
	return c
}

// directPool holds the calls of a limiter's handles between two uses.
type directPool struct{ sync.Pool }

// open takes a call from the pool.
func (p *directPool) open() *directCall { return p.Get().(*directCall) }

// close empties the call and puts it back.
func (p *directPool) close(c *directCall) {
	c.clear()
	p.Put(c)
}

// process decides a call that check found right.
func (c *directCall) process(ctx context.Context, q *handleCall, d *Decision) error {
	c.add(ctx, q, false)
	fits := true
	switch {
	case q.charging == chargeUpTo && q.n > 0 && c.Call.Counts():
		q.n = int(c.DecideUpTo(ctx))
	case q.charging == chargeInDebt:
		c.decideInDebt(ctx, q)
	case q.charging == chargeNothing:
		fits = c.Ask(ctx)
	default:
		fits = c.Decide(ctx)
	}
	return c.answer(d, q, fits)
}

// decideInDebt charges the counters of a call whether its cost fits or not.
func (c *directCall) decideInDebt(ctx context.Context, q *handleCall) {
	q.above = int(c.Charge(ctx, q.bills.MaxDebt))
	if q.above > 0 {
		q.above += q.n - int(c.rules[0].counted.Cost)
	}
}

// reserve is process for a turn that may come later.
func (c *directCall) reserve(ctx context.Context, q *handleCall, patience time.Duration, d *Decision) error {
	c.add(ctx, q, true)
	return c.answer(d, q, c.Reserve(ctx, patience.Microseconds()))
}

// add adds the counters of the handle.
func (c *directCall) add(ctx context.Context, q *handleCall, reserves bool) {
	c.policy, c.subjects = q.policy, append(c.subjects, q.subject...)
	inDebt, cost := q.charging == chargeInDebt, min(int64(q.n), algorithm.LargestCost-1)
	if inDebt {
		cost = largestCharge(q.n)
	}
	c.rules = append(c.rules, appliedRule{})
	a := &c.rules[0] // filled in place, as apply does
	in := &a.counted
	a.named, a.own, in.Rule, in.Subject, in.Cost = q.named, q.countedAt(0), &q.handle.counted, c.subjects, cost
	in.Note, in.Reserves, in.InDebt = q.note, reserves, inDebt
	if !q.unlimited() {
		in.Own = &a.own.counted
	}
	if q.named.marks.MayHave() {
		c.obey(ctx, a, addressIn(q.subject))
	}
	if q.mayOwe() && a.instead.refusesDebt() {
		c.log.MarkIgnored(q.named.name, in.Mark.Limits)
		a.instead, in.Instead = nil, nil
	}
	switch {
	case !in.Counts():
	case q.charging == chargeUpTo:
		in.Cost = min(in.Cost, in.Largest())
		q.n = int(in.Cost)
	case q.charging == chargeBilled:
		in.Cost = q.bills.cut(in.Cost, in.Largest())
	}
	c.LookOnly(q.charging == chargeNothing)
	c.Add(in)
}

// answer fills the zero Decision d by what the store answered, and counts it.
func (c *directCall) answer(d *Decision, q *handleCall, fits bool) error {
	if !fits {
		return c.costError(q)
	}
	if !c.Fit() {
		if err := c.noAnswer(q); err != nil {
			return err
		}
	}
	if c.Len() == 0 {
		d.fillUnlimited(q.named.name, q.subject)
		if q.charging != chargeNothing {
			q.named.tally.Count(string(d.Reason), string(d.Source), tally.Bound, &c.place)
		}
		return nil
	}
	at := c.Binding()
	if q.charging != chargeNothing {
		c.Notice(at)
	}
	c.fillDecision(d, at, q.subject)
	return nil
}

// noAnswer returns the error of a call whose caller's context has ended, or for which the store did
// not answer and the handle has no store policy; otherwise nil.
func (c *directCall) noAnswer(q *handleCall) error {
	if at := c.Ended(); at >= 0 {
		return c.Verdict(at).Ended
	}
	if q.policy.inside().IsSet() {
		return nil
	}
	for i := range c.Len() {
		if err := c.Verdict(i).Failure(); err != nil {
			return c.parts.failures.errorOf(q.named.name, err)
		}
	}
	return nil
}

// costError returns the error of a call that costs more than a limit ever lets through.
func (c *directCall) costError(q *handleCall) error {
	costly := c.Costly()
	limit := c.costlyLimit(&costly)
	if costly.By.Reserves {
		return fmt.Errorf("%w: %d of %v, from which %d can be reserved", ErrCostExceedsLimit, q.n, *limit, costly.Most)
	}
	return fmt.Errorf("%w: %d of %v", ErrCostExceedsLimit, q.n, *limit)
}

// reportDirect passes the decision on a direct call to OnDecision. If that panics, the caller gets
// no decision. Then undo, unless it is nil, gives back what only the caller could have given back.
func (o *Options) reportDirect(ctx context.Context, d *Decision, undo func()) {
	if o.OnDecision == nil {
		return
	}
	returned := false
	defer func() {
		if !returned && undo != nil {
			undo()
		}
	}()
	o.OnDecision(ctx, Event{Decision: d.clone()})
	returned = true
}
