package core

import (
	"context"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// probeLost is the time after which another call may take the place of a probe that did not return.
const probeLost = 10 * time.Second

// Outgoing implements limiter.Front.
func (f *front) Outgoing(rule Rule) (limiter.Outgoing, error) {
	if why := onlyBuckets(&rule.Limit); why != "" {
		return limiter.Outgoing{}, &RuleError{Rule: rule.Name, Field: "Limit", Value: rule.Limit, Why: why}
	}
	if wrong := f.registry.checkAll([]Rule{rule}, false); wrong != nil {
		return limiter.Outgoing{}, joinRuleErrors(wrong)
	}
	g := &Guard{front: f}
	g.rules = f.registry.bind([]Rule{rule}, false)
	g.rules[0].outgoing = true
	if err := f.registry.attach(&g.attachment); err != nil {
		return limiter.Outgoing{}, err
	}
	named := g.rules[0].fixed
	return limiter.Outgoing{
		Counted: &named.counted, Probe: probeOf(named.name),
		Pause:         engine.Limit{Compiled: &algorithm.PauseLimit, KeyTail: rediskey.PauseTail(named.name)},
		CountDecision: f.decisionCounter(named.tally), Counts: f.outgoing.Of(tally.Label(named.name)), Source: string(f.source),
		Report:      f.options.outgoingReports(rule),
		StoreFailed: func(err error) { f.failures.failed(named.name, g.rules[0].OnStoreError.String(), err) }, // g, so that it stays attached
	}, nil
}

// probeOf returns the slot that the first call after a pause takes.
func probeOf(name string) engine.Limit {
	slot := &prepare(InFlight(1).LostAfter(probeLost)).compiled
	return engine.Limit{Compiled: slot, Max: slot.Max, KeyTail: rediskey.ProbeTail(name, slot)}
}

// outgoingReports returns what reports the calls of a rule to OnDecision, or nil.
func (o *Options) outgoingReports(rule Rule) func(context.Context, limiter.OutgoingReport) {
	if o.OnDecision == nil {
		return nil
	}
	return func(ctx context.Context, r limiter.OutgoingReport) {
		o.OnDecision(ctx, Event{Outgoing: true, ByServer: r.ByServer, Waited: r.Waited, Decision: Decision{
			Rule: rule.Name, Key: r.Key, Limit: rule.Limit, Reason: Reason(r.Reason), Source: Source(r.Source),
			Allowed: Reason(r.Reason) == Allowed, RetryAfter: r.RetryAfter,
		}})
	}
}

// decisionCounter returns a function that counts decisions of a rule.
func (f *front) decisionCounter(of *tally.Tally) func(reason, source string) {
	places := sync.Pool{New: func() any { return new(f.tallies.NewPlace()) }}
	return func(reason, source string) {
		place := places.Get().(*tally.Place)
		of.Count(reason, source, tally.Bound, place)
		places.Put(place)
	}
}
