package core

import (
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// answerVerdicts answers the call by the store's verdicts. For a counter without a verdict, the
// store policy of its rule decides.
func (c *call) answerVerdicts() Answer {
	if !c.passed {
		for i := range c.limits {
			a, v := &c.limits[i], &c.verdicts[i]
			if v.Ended != nil {
				return c.refuse(ContextEnded, a.named, a.limit, v.Ended)
			}
			if a.isBan && v.Err != nil && c.counters[i].Refuses(v) {
				a.banned = true // no other limit reports a ban that the store did not answer for
			}
		}
	}
	if c.passed && c.limiter.thresholds != nil {
		c.warn()
	}
	c.writeHeaders(c.ResponseHeader())
	c.reportDryRuns()
	answer := c.answerBinding(c.passed)
	if c.passed {
		answer.completion = c.completion()
		if c.inspects && !c.applied[0].rule.inHandler {
			answer.outer = trackOuter(&c.limiter.outerCalls, c.View, c.counters)
		}
	}
	return answer
}

// answerBinding answers by the binding limit. It makes the Decision, which is large, only if
// something reads it.
func (c *call) answerBinding(allowed bool) Answer {
	at, options := c.binding(), &c.limiter.options
	c.tallyRules(at)
	if allowed && options.OnDecision == nil && !options.Expose && !c.softExceeded(at) {
		return Answer{}
	}
	var d Decision
	c.fillDecision(&d, at)
	return c.answer(&d)
}

// tallyRules counts the decision of each rule that is not in DryRun, and whether it bound the call:
// binding is the place of the limit that did, and that represents its rule.
func (c *call) tallyRules(binding int) {
	for i := range c.limits {
		at := i
		if i != binding {
			if binding >= 0 && c.sameRule(i, binding) {
				continue
			}
			if at = c.representative(i, false); at < 0 {
				continue
			}
		}
		c.tallyLimit(at, at == binding)
	}
}

// tallyLimit counts the decision by the limit at i, and whether that limit was the binding one.
func (c *call) tallyLimit(i int, bound bool) {
	counts, traits := c.limits[i].named.tally, tally.Traits(0)
	if bound {
		traits = tally.Bound
	}
	if c.passed && c.isNear(i) {
		traits |= tally.Near
		c.noteNear(i)
	}
	if v := &c.verdicts[i]; v.From == algorithm.FromStore && v.RetryAfter == 0 && v.Err == nil {
		counts.CountUsual(traits, &c.place)
		return
	}
	reason, source := c.outcome(i)
	counts.Count(string(reason), string(source), traits, &c.place)
	c.noteRefusal(i)
}

// isNear reports whether a call that passed left few permits of a limit of the rule that the limit
// at i represents. The rule must have allowed it.
func (c *call) isNear(i int) bool {
	if len(c.limits) == 1 || c.verdicts[i].RetryAfter > 0 {
		return !c.limits[i].isBan && isNear(&c.counters[i], &c.verdicts[i])
	}
	for j := range c.limits { // the cheapest test first, which nearly always fails
		if isNear(&c.counters[j], &c.verdicts[j]) && !c.limits[j].isBan && c.sameRule(i, j) {
			return true
		}
	}
	return false
}

// isNear reports whether at least 80 % of a limit are in use after a charge. It does not, if the
// store did not charge: a local count has only a share of the limit.
func isNear(c *algorithm.Counter, v *algorithm.Verdict) bool {
	return 5*v.Remaining <= c.Limit.Max && v.RetryAfter == 0 && v.Err == nil &&
		(v.From == algorithm.FromStore || v.From == algorithm.FromLease)
}

// reportDryRuns counts the decision of each rule in DryRun, and reports each to OnDecision by
// itself.
func (c *call) reportDryRuns() {
	for i := range c.limits {
		if !c.limits[i].rule.DryRun {
			continue
		}
		at := c.representative(i, true)
		if at < 0 {
			continue
		}
		c.tallyLimit(at, false)
		if c.limiter.options.OnDecision != nil && !c.limits[at].silent() {
			var d Decision
			c.fillDecision(&d, at)
			c.report(&d)
		}
	}
}

// representative returns the place of the limit that represents the rule whose first limit is at i:
// the one that binds the call most, and a silent ban only if the rule has nothing else. It returns
// -1 if i is not the rule's first limit, if the store answered for none of its limits, or if dryRun
// differs from the rule's DryRun. Rules of one name count as one, because callers and Stats know
// them by name.
func (c *call) representative(i int, dryRun bool) (at int) {
	if c.limits[i].rule.DryRun != dryRun {
		return -1
	}
	for j := range i {
		if c.sameRule(i, j) {
			return -1
		}
	}
	at = -1
	if !c.unanswered(i) {
		at = i
	}
	for j := i + 1; j < len(c.limits); j++ {
		switch {
		case !c.sameRule(i, j) || c.unanswered(j):
		case at < 0 || c.limits[at].silent():
			at = j
		case !c.limits[j].silent() && c.bindsMore(j, at):
			at = j
		}
	}
	return at
}

// sameRule reports whether the limits at i and j are of one rule, or of rules of one name.
func (c *call) sameRule(i, j int) bool {
	a, b := &c.limits[i], &c.limits[j]
	return (a.named == b.named || a.named.name == b.named.name) && a.rule.DryRun == b.rule.DryRun && a.rule.Soft == b.rule.Soft
}

// fillDecision fills d with the decision, the binding limit first. For a rule in DryRun it lists
// only the limits of that rule.
func (c *call) fillDecision(d *Decision, at int) {
	if at < 0 { // all rules are in DryRun
		first := &c.limits[0]
		d.Allowed, d.Reason, d.Rule, d.Limit, d.Source = true, Allowed, first.named.name, *first.limit, FromNobody
		return
	}
	c.fillLimit(d, at)
	dryRun := c.limits[at].rule.DryRun
	for i := range c.limits {
		a := &c.limits[i]
		if i != at && a.rule.DryRun == dryRun && !a.silent() && !c.unanswered(i) && (!dryRun || c.sameRule(i, at)) {
			if d.All == nil {
				d.All = []Decision{*d}
			}
			d.All = append(d.All, Decision{})
			c.fillLimit(&d.All[len(d.All)-1], i)
		}
	}
}

// binding returns the place of the limit that binds the call most, or -1 if all rules are in DryRun.
// A soft limit binds only if it is exceeded and no other one refuses, or if there is no other.
func (c *call) binding() (at int) {
	at = -1
	for i := range c.limits {
		if c.limits[i].shown() && !c.unanswered(i) && (at < 0 || c.bindsMore(i, at)) {
			at = i
		}
	}
	if c.hasSoft && (at < 0 || !c.counters[at].Refuses(&c.verdicts[at])) {
		if soft := c.bindingSoft(); at < 0 || c.softExceeded(soft) {
			return soft
		}
	}
	return at
}

// bindingSoft returns the place of the soft limit that binds the call most, or -1 if there is none.
func (c *call) bindingSoft() (at int) {
	at = -1
	for i := range c.limits {
		if c.limits[i].rule.Soft && !c.unanswered(i) && (at < 0 || c.bindsMore(i, at)) {
			at = i
		}
	}
	return at
}

// softExceeded reports whether there is a limit at i, and it is a soft one that the call does not
// fit into.
func (c *call) softExceeded(i int) bool {
	return c.hasSoft && i >= 0 && c.limits[i].rule.Soft && c.verdicts[i].RetryAfter > 0
}

// unanswered reports whether the limit at i was not asked, because another one still refuses as it
// did just before. Such a limit is left out of headers, decisions and counts.
func (c *call) unanswered(i int) bool { return c.verdicts[i].From == algorithm.FromNobody }

// bindsMore reports whether the limit at i binds the call more than the one at j: a refusal more
// than an allowance, a longer wait more than a shorter one, a verdict more than a failure, fewer
// permits left more than many.
func (c *call) bindsMore(i, j int) bool {
	a, b := &c.verdicts[i], &c.verdicts[j]
	return bindsMore(a, b, c.counters[i].Refuses(a), c.counters[j].Refuses(b))
}

func bindsMore(a, b *algorithm.Verdict, refused, other bool) bool {
	switch {
	case refused != other:
		return refused
	case a.RetryAfter != b.RetryAfter:
		return a.RetryAfter > b.RetryAfter
	case (a.Err == nil) != (b.Err == nil):
		return a.Err == nil
	case a.Remaining != b.Remaining:
		return a.Remaining < b.Remaining
	default:
		return a.ResetAfter > b.ResetAfter
	}
}

// outcome returns the reason and source of the decision by the limit at i, or of an allowed call if
// i is -1.
func (c *call) outcome(i int) (Reason, Source) {
	if i < 0 {
		return Allowed, FromNobody
	}
	a, v := &c.limits[i], &c.verdicts[i]
	switch {
	case v.Err == nil && v.RetryAfter == 0:
		return Allowed, sourceOf(v, c.limiter.source)
	case v.Err != nil && c.counters[i].Refuses(v):
		return StoreFailClosed, FromNobody
	case v.Err != nil:
		return StoreFailOpen, FromNobody
	case a.rule.DryRun:
		return DryRunExceeded, sourceOf(v, c.limiter.source)
	case a.rule.Soft:
		return SoftExceeded, sourceOf(v, c.limiter.source)
	case c.blocked(i):
		return Blocked, sourceOf(v, c.limiter.source)
	case a.banned:
		return Banned, sourceOf(v, c.limiter.source)
	default:
		return LimitExceeded, sourceOf(v, c.limiter.source)
	}
}

// fillLimit fills the zero Decision d with the decision by the limit at i.
func (c *call) fillLimit(d *Decision, i int) {
	a, v := &c.limits[i], &c.verdicts[i]
	reason, source := c.outcome(i)
	d.fill(a.named.name, a.limit, v, source)
	d.Key, d.Reason = string(c.subjects[a.from:a.to]), reason
	switch {
	case v.Err != nil:
		d.Allowed = reason == StoreFailOpen
		return
	case reason == DryRunExceeded || reason == SoftExceeded:
		d.Allowed, d.RetryAfter = true, 0
	}
	if c.passed {
		d.receipt.Fill(&c.limiter.refunds, &c.counters[i], v, c.id+uint64(i))
		d.receipt.Dry = a.rule.DryRun
	}
}
