package core

import (
	"context"
	"fmt"
	"math"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// directCall is a direct call while it is being decided: its one counter, and the room for the key. It comes from a pool.
// A Decision is large, so it is written once, where the caller finds it.
type directCall struct {
	limiter *Limiter
	counter [1]algorithm.Counter
	verdict [1]algorithm.Verdict
	id      uint64    // of its charge: another for each call, as long as this object lives in the pool
	stripe  uint32    // where its decisions are counted
	last    *prepared // what was asked for last, and often is again
	spare   prepared  // for what is not kept
}

// question is what a direct call asks, but for its limit.
type question struct {
	name, subject string
	mark          string // Counter.Mark
	n             int
	charge        bool
}

func newDirectCall(l *Limiter) *directCall {
	c := &directCall{limiter: l, id: l.callIDs.Add(1) << 32, stripe: l.tallies.stripe()}
	c.counter[0].Key = append(make([]byte, 0, maxKey), l.keyHead...) // where it stays
	c.counter[0].Required = true
	c.last = &c.spare
	return c
}

// direct decides over the one counter of a direct call, into the zero Decision d.
func (l *Limiter) direct(ctx context.Context, d *Decision, limit *Limit, q *question) error {
	err := l.ask(ctx, d, limit, q)
	if err == nil && q.charge {
		l.hearDirect(ctx, d, nil)
	}
	return err
}

// ask is direct without the call of OnDecision.
func (l *Limiter) ask(ctx context.Context, d *Decision, limit *Limit, q *question) (err error) {
	c := l.directs.Get().(*directCall)
	if limit.Max < 0 && limit.unlimited() {
		if err = l.unlimited(ctx, d, q); err == nil && q.charge {
			l.tallies.ofDirect(q.name).count(d.Reason, d.Source, true, c.stripe)
		}
	} else {
		err = c.decide(ctx, d, limit, q)
	}
	c.done()
	return err
}

// decide asks the store.
func (c *directCall) decide(ctx context.Context, d *Decision, limit *Limit, q *question) error {
	if err := c.prepare(limit, q); err != nil {
		return err
	}
	if q.n < 0 {
		return negative(q.name, q.n)
	}
	if int64(q.n) > c.last.compiled.Max {
		return fmt.Errorf("%w: %d of %v", ErrCostExceedsLimit, q.n, *limit)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.limiter.store.Decide(ctx, c.counter[:], q.charge, c.verdict[:])
	if q.mark != "" {
		c.limiter.dropDoubtfulSlots(c.counter[:], c.verdict[:])
	}
	return c.answer(d, q)
}

// prepare forms the counter.
func (c *directCall) prepare(limit *Limit, q *question) (err error) {
	if err := checkNamed(q.name, q.subject); err != nil {
		return err
	}
	p := c.last
	if p.name != q.name || p.limit != *limit {
		if p, err = c.limiter.prepare(q.name, limit, &c.spare); err != nil {
			return err
		}
		c.last = p
	}
	counter := &c.counter[0]
	key := appendEscaped(counter.Key[:len(c.limiter.keyHead)], q.subject)
	if p.keyTail != "" {
		key = append(key, p.keyTail...)
	} else {
		key = appendTail(key, q.name, p.compiled)
	}
	counter.Key, counter.Limit, counter.Cost, counter.Mark = bounded(key), p.compiled, int64(q.n), q.mark
	c.verdict[0] = algorithm.Verdict{}
	return nil
}

// answer puts the store's answer into words, and counts a decision that charged.
func (c *directCall) answer(d *Decision, q *question) error {
	v := &c.verdict[0]
	switch {
	case v.Ended != nil:
		return v.Ended
	case v.Err != nil:
		return c.limiter.storeError(q.name, v.Err)
	}
	d.fill(q.name, &c.last.limit, v, sourceOf(v, c.limiter.source))
	d.Key = q.subject
	if q.charge {
		d.receipt.fill(c.limiter, &c.counter[0], v, c.id)
		c.last.tally.count(d.Reason, d.Source, true, c.stripe)
	}
	return nil
}

// hear tells OnDecision.
func (l *Limiter) hear(ctx context.Context, d *Decision) {
	if l.options.OnDecision != nil {
		l.options.OnDecision(ctx, *d)
	}
}

// hearDirect passes the decision on a direct call to OnDecision. If that panics, the caller gets no
// decision, so undo, unless nil, returns what only the caller could have returned.
func (l *Limiter) hearDirect(ctx context.Context, d *Decision, undo func()) {
	if l.options.OnDecision == nil {
		return
	}
	heard := false
	defer func() {
		if !heard && undo != nil {
			undo()
		}
	}()
	l.options.OnDecision(ctx, d.clone())
	heard = true
}

// done puts the call back.
func (c *directCall) done() {
	c.id++
	c.limiter.directs.Put(c)
}

// unlimited is the answer to who has no limit, in the zero Decision.
func (l *Limiter) unlimited(ctx context.Context, d *Decision, q *question) error {
	if err := checkNamed(q.name, q.subject); err != nil {
		return err
	}
	if q.n < 0 {
		return negative(q.name, q.n)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.Allowed, d.Reason, d.Rule, d.Key, d.Limit = true, Allowed, q.name, q.subject, Unlimited
	d.Remaining, d.Source = math.MaxInt, FromNobody
	return nil
}
