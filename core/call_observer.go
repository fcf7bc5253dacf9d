package core

import (
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// The decider is the engine's observer. It passes what the engine notices on to Stats and Top, to
// OnThreshold, to the list of bans, and to the log.

// Decided implements engine.Observer.
func (c *decider) Decided(i int, d engine.Decided) {
	if c.parts.options.OnDecision != nil {
		c.noteTried(i)
	}
	counts, traits := c.ruleOf(i).named.tally, tally.Traits(0)
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
	counts.Count(string(reasonOf[d.Outcome]), string(c.source(i)), traits, &c.place)
	if d.Refused {
		noteRefusal(counts, c.ID(), c.Limit(i).Subject)
	}
}

// noteTried notes that OnDecision is to receive the decision by the limit at i by itself, if that is of a
// rule in DryRun.
func (c *decider) noteTried(i int) {
	if a := c.Limit(i); a.Rule.Mode == engine.DryRun && !a.Silent() {
		c.tried = append(c.tried, i)
	}
}

// noteNear notes for Top the largest share in use among a rule's limits.
func noteNear(of *tally.Tally, call uint64, subject []byte, share float64) {
	if of.Top.Weight(toplist.Near, call) > 0 {
		of.Top.NoteUse(share, subject)
	}
}

// noteRefusal notes for Top that a rule refused a call or, if the rule is lenient, would have
// refused it.
func noteRefusal(of *tally.Tally, call uint64, subject []byte) {
	if weight := of.Top.Weight(toplist.Refused, call); weight > 0 {
		of.Top.NoteRefusal(weight, subject)
	}
}

// Charged implements engine.Observer.
func (c *decider) Charged(i int, warn []float64) {
	a, limit := c.Limit(i), c.limitAt(i)
	c.parts.thresholds.Charged(&thresholds.Charge{
		Rule: a.Rule.Name, DryRun: a.Rule.Mode == engine.DryRun, Subject: a.Subject, Warn: warn, Max: limit.Max,
	}, func() Limit { return *limit }, c.Counter(i), c.Verdict(i))
}

// Banned implements engine.Observer.
func (c *decider) Banned(i int) {
	if a := c.Limit(i); a.Rule.Mode != engine.DryRun {
		c.parts.bans.Saw(c.Counter(i).Key, a.Rule.Name, a.Subject, c.Verdict(i))
	}
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

// OverrideIgnored implements engine.Observer.
func (c *decider) OverrideIgnored(a *engine.Applied, why error) {
	c.log.OverrideIgnored(a.Rule.Name, string(a.Subject), why.Error())
}

// reasonOf has the reasons of the engine's outcomes.
var reasonOf = [...]Reason{
	engine.Allowed: Allowed, engine.LimitExceeded: LimitExceeded, engine.Banned: Banned, engine.Blocked: Blocked,
	engine.DryRunExceeded: DryRunExceeded, engine.SoftExceeded: SoftExceeded,
	engine.StoreFailOpen: StoreFailOpen, engine.StoreFailClosed: StoreFailClosed,
}

// source returns what decided about the limit at i.
func (c *decider) source(i int) Source { return sourceOf(c.Source(i), c.parts.source) }

// fillDecision fills d, the zero Decision, with the decision on the call, the binding limit first.
// For a rule in DryRun it lists only the limits of that rule. If the place of the limit is -1, all
// rules are in DryRun. key is the subject, or "" if it has to be copied. It fills d where the
// caller reads it: a Decision has 250 bytes, and each return would cost 10 ns of the 50 that a
// handle adds to the store in this process.
func (c *decider) fillDecision(d *Decision, at int, key string) {
	if at < 0 {
		d.Allowed, d.Reason, d.Rule, d.Limit, d.Source = true, Allowed, c.Limit(0).Rule.Name, *c.limitAt(0), FromNobody
		return
	}
	c.fillLimit(d, at, key)
	if c.Len() == 1 {
		return
	}
	dryRun := c.Limit(at).Rule.Mode == engine.DryRun
	for i := range c.Len() {
		a := c.Limit(i)
		if i == at || a.Silent() || c.Unanswered(i) || (a.Rule.Mode == engine.DryRun) != dryRun || dryRun && !c.SameRule(i, at) {
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
		case outcome == engine.DryRunExceeded || outcome == engine.SoftExceeded:
			d.Allowed, d.RetryAfter = true, 0
		}
	}
	if c.Passed() {
		d.receipt.Fill(c.parts.refunds, c.Counter(i), v, c.ID()+uint64(i))
		d.receipt.DryRun = a.Rule.Mode == engine.DryRun
	}
}

var _ engine.Observer = (*decider)(nil)
