package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// handle is what a [Counter], [Pacer], [Log] or [Slots] prepares once for all its calls.
type handle struct {
	limiter *Limiter
	name    string
	limits  []handleLimit // charged together; the first is the handle's own
	accepts func(*Limit) string
	policy  StorePolicy
	tally   *tally.Tally
}

type handleLimit struct {
	*preparedLimit
	keyTail string
}

// newHandle checks a name and its limits. accepts returns why a limit does not suit the handle, or
// "".
func (l *Limiter) newHandle(name string, accepts func(*Limit) string, limits ...Limit) (*handle, error) {
	switch {
	case l == nil:
		return nil, errNilLimiter
	case name == "":
		return nil, &RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	}
	h := &handle{limiter: l, name: strings.Clone(name), accepts: accepts, tally: l.tallies.OfHandle(name)}
	for _, limit := range limits {
		prepared := h.prepare(prepare(limit))
		if prepared.err != nil {
			return nil, prepared.err
		}
		h.limits = append(h.limits, handleLimit{prepared, rediskey.LimitTail(name, false, &prepared.compiled)})
	}
	if wrong := checkAlso(limits[0], limits[1:]); wrong != nil {
		wrong.Rule = name
		return nil, wrong
	}
	return h, nil
}

// prepare returns the limit, or its error if the handle cannot use it.
func (h *handle) prepare(of *preparedLimit) *preparedLimit {
	if wrong, ok := of.err.(*RuleError); ok {
		named := *wrong
		named.Rule = h.name
		return &preparedLimit{err: &named}
	}
	if why := h.accepts(&of.limit); why != "" && of.limit != Unlimited {
		return &preparedLimit{err: &RuleError{Rule: h.name, Field: "Limit", Value: of.limit, Why: why}}
	}
	return of
}

// withPolicy returns the handle with a store policy.
func (h *handle) withPolicy(policy StorePolicy) *handle {
	if h == nil {
		return nil
	}
	changed := *h
	changed.policy = policy
	return &changed
}

// directCall is a direct call while it is being decided. It comes from a pool. A Decision is large,
// so it is written once, where the caller finds it.
type directCall struct {
	limiter  *Limiter
	counters []algorithm.Counter
	verdicts []algorithm.Verdict
	limits   []*Limit
	id       uint64 // of its first charge: others for each call, as long as this object lives in the pool
	stripe   uint32 // where its decisions are counted
}

// question is what a direct call asks.
type question struct {
	*handle
	own     *preparedLimit // in place of the handle's first limit, or nil
	subject string
	mark    string // Counter.Mark
	n       int
	charge  bool
	upTo    bool // charge as much of n as fits
}

func newDirectCall(l *Limiter) *directCall {
	return &directCall{limiter: l, id: l.callIDs.Add(1) << 32, stripe: l.tallies.Stripe()}
}

// ask decides, into the zero Decision d, and reports the decision.
func (q *question) ask(ctx context.Context, d *Decision) error {
	err := q.decide(ctx, d)
	if err == nil && q.charge {
		q.limiter.reportDirect(ctx, d, nil)
	}
	return err
}

// decide is ask without the report.
func (q *question) decide(ctx context.Context, d *Decision) error {
	if err := q.check(ctx); err != nil {
		return err
	}
	c := q.limiter.directs.Get().(*directCall)
	var err error
	if q.unlimited() {
		q.letPass(d)
	} else if err = c.form(q); err == nil {
		c.ask(ctx, q)
		if q.mark != "" {
			c.limiter.dropDoubtfulSlots(c.counters, c.verdicts)
		}
		err = c.answer(d, q)
	}
	if err == nil && q.charge {
		q.tally.Count(string(d.Reason), string(d.Source), true, c.stripe)
	}
	c.close()
	return err
}

// ask asks the store. For a call that takes as many permits as it can get, q.n is then the number
// charged.
func (c *directCall) ask(ctx context.Context, q *question) {
	if !q.upTo || q.n == 0 {
		c.limiter.store.Decide(ctx, c.counters, q.charge, c.verdicts)
		return
	}
	c.limiter.store.DecideUpTo(ctx, c.counters, c.verdicts)
	q.n = int(c.counters[0].Cost)
}

// check finds what is wrong with the call.
func (q *question) check(ctx context.Context) error {
	switch {
	case q.handle == nil:
		return errZeroHandle
	case q.own != nil && q.own.err != nil:
		return q.own.err
	case q.subject == "":
		return noSubject(q.name)
	case q.n < 0:
		return &RuleError{Rule: q.name, Field: "n", Value: q.n, Why: "must not be negative"}
	case q.policy.mode == countLocally:
		if why := q.checkPolicy(); why != "" {
			return &RuleError{Rule: q.name, Field: "StorePolicy", Value: q.policy, Why: why}
		}
	}
	return ctx.Err()
}

func noSubject(name string) error {
	return &RuleError{Rule: name, Field: "subject", Value: "", Why: "must say who is limited, as in user:alice"}
}

// checkPolicy returns what is wrong with counting locally, or "".
func (q *question) checkPolicy() string {
	if why := q.policy.check(); why != "" {
		return why
	}
	for i := range q.limits {
		if limit := q.limit(i); limit.limit != Unlimited {
			if why := q.policy.checkFor(&limit.compiled); why != "" {
				return why
			}
		}
	}
	return ""
}

// limit returns the handle's limit at i.
func (q *question) limit(i int) *preparedLimit {
	if i == 0 && q.own != nil {
		return q.own
	}
	return q.limits[i].preparedLimit
}

func (q *question) unlimited() bool { return q.limit(0).limit.unlimited() }

// letPass answers a caller without a limit, in the zero Decision.
func (q *question) letPass(d *Decision) {
	d.Allowed, d.Reason, d.Rule, d.Key, d.Limit = true, Allowed, q.name, q.subject, Unlimited
	d.Remaining, d.Source = math.MaxInt, FromNobody
}

// form forms the counters of a call.
func (c *directCall) form(q *question) error {
	if q.upTo {
		q.n = q.most()
	}
	for i := range q.limits {
		limit := q.limit(i)
		if int64(q.n) > limit.compiled.Max {
			return fmt.Errorf("%w: %d of %v", ErrCostExceedsLimit, q.n, limit.limit)
		}
		c.formOne(q, i)
	}
	return nil
}

// most returns as much of n as can ever fit into all limits.
func (q *question) most() int {
	most := int64(q.n)
	for i := range q.limits {
		most = min(most, q.limit(i).compiled.Max)
	}
	return int(most)
}

func (c *directCall) formOne(q *question, i int) {
	limit, counter := q.limit(i), c.addCounter()
	counter.Key = q.appendKey(counter.Key, i)
	counter.Limit, counter.Cost, counter.Mark = &limit.compiled, int64(q.n), q.mark
	counter.Required, counter.LocalShare = q.policy.mode == storeUnset, 0
	q.policy.apply(counter)
	c.limits = append(c.limits, &limit.limit)
}

// appendKey returns the key of the counter at i, written into room.
func (q *question) appendKey(room []byte, i int) []byte {
	if i == 0 && q.own != nil {
		return rediskey.AppendLimit(room, q.limiter.keyHead, q.subject, q.name, false, &q.own.compiled)
	}
	return rediskey.Append(room, q.limiter.keyHead, q.subject, q.limits[i].keyTail)
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

// answer puts the store's answer into d, the zero Decision.
func (c *directCall) answer(d *Decision, q *question) error {
	at := 0
	for i := range c.verdicts {
		if c.verdicts[i].Ended != nil {
			return c.verdicts[i].Ended
		}
		if i > 0 && bindsMore(&c.verdicts[i], &c.verdicts[at], c.refuses(i), c.refuses(at)) {
			at = i
		}
	}
	if err := c.failure(); err != nil {
		if q.policy.mode == storeUnset {
			return c.limiter.storeError(q.name, err)
		}
		c.limiter.storeFailed(q.name, q.policy.String(), err)
	}
	passed := algorithm.Passes(c.counters, c.verdicts)
	c.decision(d, at, q, passed)
	if len(c.counters) > 1 {
		c.decisions(d, at, q, passed)
	}
	return nil
}

// decisions lists the decision on each limit in d.All, the binding one first.
func (c *directCall) decisions(d *Decision, binding int, q *question, passed bool) {
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
func (c *directCall) decision(d *Decision, i int, q *question, passed bool) {
	v := &c.verdicts[i]
	d.fill(q.name, c.limits[i], v, sourceOf(v, c.limiter.source))
	d.Key = q.subject
	switch {
	case v.Err != nil:
		d.Source = FromNobody
		if d.Allowed, d.Reason = true, StoreFailOpen; c.refuses(i) {
			d.Allowed, d.Reason = false, StoreFailClosed
		}
	case q.charge && passed:
		d.receipt.fill(c.limiter, &c.counters[i], v, c.id+uint64(i))
	}
}

func (c *directCall) refuses(i int) bool { return c.counters[i].Refuses(&c.verdicts[i]) }

// failure returns why the store did not answer for one of the counters, or nil.
func (c *directCall) failure() error {
	for i := range c.verdicts {
		if err := c.verdicts[i].Failure(); err != nil {
			return err
		}
	}
	return nil
}

// close puts the call back into the pool.
func (c *directCall) close() {
	c.id += 1 + uint64(len(c.counters))
	c.counters, c.verdicts, c.limits = c.counters[:0], c.verdicts[:0], c.limits[:0]
	c.limiter.directs.Put(c)
}

// reset forgets the subject's use of all limits of the handle.
func (q *question) reset(ctx context.Context) (changed bool, err error) {
	if q.handle == nil {
		return false, errZeroHandle
	}
	if err := checkOperated(q.name, q.subject); err != nil {
		return false, err
	}
	if err := q.check(ctx); err != nil {
		return false, err
	}
	var errs []error
	for i := range q.limits {
		if q.limit(i).limit.unlimited() {
			continue
		}
		some, err := q.limiter.reset(ctx, q.name, q.appendKey(nil, i))
		changed = changed || some
		errs = append(errs, err)
	}
	err = errors.Join(errs...)
	q.limiter.operated(ctx, "reset", q.name, q.subject, changed, err)
	return changed, err
}

// reset forgets a counter.
func (l *Limiter) reset(ctx context.Context, name string, key []byte) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	changed, err = l.store.Reset(ctx, key)
	return changed, l.storeError(name, err)
}
