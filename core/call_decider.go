package core

import (
	"context"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/reference"
	"github.com/accesslimit/accesslimit/core/internal/refund"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// decider decides a call by the engine, and says what the engine decided in the terms of this
// package. Middlewares and handles have one in each call.
type decider struct {
	engine.Call
	parts    *callParts
	log      *operatorlog.Log
	place    tally.Place // where decisions are counted
	rules    []appliedRule
	subjects []byte       // those of all rules, one after the other
	policy   StorePolicy  // that of a handle
	learns   afterwards   // what rules that apply have to learn
	traits   tally.Traits // of decisions that do not bind
	// outOfTime is set when the time of the call was over before the store was asked for its counters.
	outOfTime bool
	now       int64 // when the call met the first mark, by the clock of the marks, or 0
}

// appliedRule is a rule that applies to a call.
type appliedRule struct {
	counted engine.Applied // what the engine knows of it; its At is the index in decider.rules
	rule    *boundRule     // nil for a handle
	named   *namedRule     // the rule under the name that it counts this call by
	own     *ruleLimit     // the limit of this subject: the rule's own, or what a plan puts in its place
	instead *markedLimits  // the limits that a mark puts in place of all, or nil
	known   bool           // the functions of the rule, except Note, ran for this call
	noted   bool           // Note ran too
	unit    int64          // how many bytes a permit stands for, if CostBySize computed the cost; otherwise 0
	err     error          // why the subject is not known
}

// init prepares a new decider for a pool. It must not be copied afterwards.
func (c *decider) init(parts *callParts) {
	c.parts, c.log, c.place = parts, parts.log, parts.tallies.NewPlace()
	c.Call = parts.engine.NewCall(c, parts.ids.Add(1)<<32)
}

// clear empties the decider for the next call.
func (c *decider) clear() {
	c.Clear()
	c.rules, c.subjects, c.learns, c.outOfTime, c.now = c.rules[:0], c.subjects[:0], 0, false, 0
}

// settles reports whether the handler can settle what the call costs.
func (c *decider) settles() bool { return c.learns&whatItCosted != 0 }

// ruleOf returns the rule of the limit at i.
func (c *decider) ruleOf(i int) *appliedRule { return &c.rules[c.Limit(i).At] }

// preparedAt returns the limit at i in the form that was prepared for its rule.
func (c *decider) preparedAt(i int) *ruleLimit {
	a := c.Limit(i)
	of := &c.rules[a.At]
	switch {
	case a.IsMark:
		return of.named.limits[0]
	case of.instead != nil:
		return of.instead.limits[a.N]
	default:
		return of.named.limitAt(a.N, of.own)
	}
}

// limitAt returns the limit at i: that of its rule, or the stricter one of several rules with this
// counter.
func (c *decider) limitAt(i int) *Limit {
	limit, a := &c.preparedAt(i).limit, c.Limit(i)
	if a.Max == 0 {
		return limit
	}
	both := *limit
	both.Max = int(a.Max)
	if both.Algorithm.properties().Burst {
		both.Burst = int(a.Burst)
	}
	return &c.parts.limits.of(both).limit
}

// estimateAt returns the index of the first rule that charged an estimate to the limit at i, or -1.
func (c *decider) estimateAt(i int) int {
	a := c.Limit(i)
	switch {
	case !c.settles() || a.IsMark:
		return -1
	case c.rules[a.At].rule.terms != nil:
		return a.At
	}
	for _, other := range a.Merged {
		if c.rules[other.At].rule.terms != nil {
			return other.At
		}
	}
	return -1
}

// consult asks the store for verdicts on the counters, and charges them if charge is set. It reports
// whether the cost fits: if not, nothing was charged.
func (c *decider) consult(ctx context.Context, charge bool) (fits bool) {
	if charge {
		return c.Decide(ctx)
	}
	return c.Look(ctx)
}

// costlyLimit returns the limit that the cost of the call never fits into.
func (c *decider) costlyLimit(costly *engine.Costly) *Limit {
	of := &c.rules[costly.By.At]
	if of.instead != nil {
		return &of.instead.limits[costly.N].limit
	}
	return &of.named.limitAt(costly.N, of.own).limit
}

// callParts are the parts of a limiter that its calls use: those of middlewares and those of
// handles. They do not change once the limiter is made.
type callParts struct {
	engine     *engine.Engine
	ids        *atomic.Uint64 // how many calls have got an ID
	source     Source         // where the limiter keeps its counters
	options    Options
	log        *operatorlog.Log
	failures   *storeFailures
	tallies    *tally.Table
	marks      *marks.Set
	refunds    *refund.Ledger
	limits     *limitCache
	clientIPs  *clientip.Finder
	logins     *logins
	references reference.Keys           // none unless refusals have references
	thresholds *thresholds.Watch[Limit] // nil without Options.OnThreshold
	inFlight   *inflight.Keeper
	dryRuns    *dryRuns
}

// fillDecision fills d, the zero Decision, with the decision on the call, the binding limit first. key is
// the subject, or "" if it has to be copied. It fills d where the caller reads it: a Decision has 250
// bytes, and each return would cost 10 ns of the 50 that a handle adds to the store in this process.
func (c *decider) fillDecision(d *Decision, at int, key string) {
	c.fillLimit(d, at, key)
	if c.Len() == 1 {
		return
	}
	for i := range c.Len() {
		if i == at || c.Unasked(i) {
			continue
		}
		if d.All == nil {
			d.All = append(make([]Decision, 0, c.Len()), *d)
		}
		d.All = append(d.All, Decision{})
		c.fillLimit(&d.All[len(d.All)-1], i, key)
	}
}

// fillLimit fills the zero Decision d with the decision by the limit at i.
func (c *decider) fillLimit(d *Decision, i int, key string) {
	a, v := c.Limit(i), c.Verdict(i)
	d.fill(a.Rule.Name, c.limitAt(i), v, c.source(i))
	if d.Key = key; key == "" {
		d.Key = string(a.Subject)
	}
	if !c.Fit() {
		outcome := c.Outcome(i)
		d.Reason = reasonOf[outcome]
		switch {
		case v.Err != nil:
			d.Allowed = outcome == engine.StoreFailOpen
			return
		case outcome == engine.SoftExceeded:
			d.Allowed, d.RetryAfter = true, 0
		}
	}
	if c.Passed() && c.estimateAt(i) < 0 {
		d.receipt.Fill(c.parts.refunds, c.Counter(i), v, c.ID()+uint64(i))
		d.receipt.DryRun, d.receipt.Turn = c.ruleOf(i).named.tried, a.Reserves
	}
}
