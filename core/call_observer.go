package core

import (
	"bytes"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// The decider is the engine's observer. It passes what the engine notices on to Stats and Top, to
// OnThreshold, to what bans subjects, and to the log.

// Decided implements engine.Observer.
func (c *decider) Decided(i int, d engine.Decided) {
	named, traits := c.ruleOf(i).named, c.traits
	counts := named.tally
	if d.Bound {
		traits = tally.Bound
	}
	if d.Near {
		traits |= tally.Near
		noteNear(counts, c.ID(), c.Limit(i).Subject, c.MostUsed(i))
	}
	if d.Usual {
		counts.CountUsual(traits, &c.place)
		return
	}
	reason := reasonOf[d.Outcome]
	if named.tried {
		reason = ifTried(reason)
	}
	counts.Count(string(reason), string(c.source(i)), traits, &c.place)
	if d.Refused {
		noteRefusal(counts, c.ID(), c.Limit(i).Subject)
		c.strike(i)
	}
}

// noteNear notes for Top the largest share in use among a rule's limits.
func noteNear(of *tally.Tally, call uint64, subject []byte, share float64) {
	if of.Top.Weight(toplist.Near, call) > 0 {
		of.Top.NoteUse(share, subject)
	}
}

// noteRefusal notes for Top that a rule refused a call or, if it refuses nobody, would have refused
// it.
func noteRefusal(of *tally.Tally, call uint64, subject []byte) {
	if weight := of.Top.Weight(toplist.Refused, call); weight > 0 {
		of.Top.NoteRefusal(weight, subject)
	}
}

// Charged implements engine.Observer.
func (c *decider) Charged(i int, warn []float64) {
	limit := c.limitAt(i)
	charge := c.thresholdCharge(i, limit, warn)
	c.parts.thresholds.Charged(&charge, func() Limit { return *limit }, c.Counter(i), c.Verdict(i))
}

// chargedLater returns what receives later charges to the limit at i, as Charged receives that of the call
// itself, or nil if nothing is reported of the limit.
func (c *decider) chargedLater(i int) func(*algorithm.Counter, *algorithm.Verdict) {
	warn, watch := c.Warn(i), c.parts.thresholds
	if len(warn) == 0 || watch == nil {
		return nil
	}
	limit := *c.limitAt(i)
	charge := c.thresholdCharge(i, &limit, warn)
	charge.Subject = bytes.Clone(charge.Subject)
	return func(counter *algorithm.Counter, v *algorithm.Verdict) {
		watch.Charged(&charge, func() Limit { return limit }, counter, v)
	}
}

func (c *decider) thresholdCharge(i int, limit *Limit, warn []float64) thresholds.Charge {
	a := c.Limit(i)
	return thresholds.Charge{Rule: a.Rule.Name, DryRun: c.ruleOf(i).named.tried, Subject: a.Subject, Warn: warn, Max: limit.Max}
}

// StoreFailed implements engine.Observer. The error that a handle without a policy returns is logged
// where it is made.
func (c *decider) StoreFailed(a *engine.Applied, err error) {
	policy := c.policy
	if rule := c.rules[a.At].rule; rule != nil {
		policy = rule.OnStoreError
	}
	if policy.inside().IsSet() {
		c.parts.failures.failed(a.Rule.Name, policy.String(), err)
	}
}

// reasonOf has the reasons of the engine's outcomes.
var reasonOf = [...]Reason{
	engine.Allowed: Allowed, engine.LimitExceeded: LimitExceeded, engine.Banned: Banned, engine.Blocked: Blocked,
	engine.SoftExceeded:  SoftExceeded,
	engine.StoreFailOpen: StoreFailOpen, engine.StoreFailClosed: StoreFailClosed,
}

// source returns what decided about the limit at i.
func (c *decider) source(i int) Source { return sourceOf(c.Source(i), c.parts.source) }

var _ engine.Observer = (*decider)(nil)
