package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// settle makes the answer of what the store said, each rule's own policy standing in where it said nothing.
func (c *call) settle() Answer {
	if !c.passed {
		for i := range c.asked {
			a, v := &c.asked[i], &c.verdicts[i]
			if v.Ended != nil {
				return c.refuse(ContextEnded, a, v.Ended)
			}
			if c.counters[i].Refuses(v) {
				a.banned = a.banned || a.isBan && v.Err != nil // nobody else may speak for a ban that could not be asked
			}
		}
	}
	c.writeHeaders(c.ResponseHeader())
	c.reportTried()
	answer := c.answerSettled(c.passed)
	if c.passed {
		answer.unfinished = c.unfinished()
		if c.looks {
			answer.unfinished = c.asOuter(answer.unfinished)
		}
	}
	return answer
}

// answerSettled makes a Decision of what the store said only for those who look at it: it is large.
func (c *call) answerSettled(allowed bool) Answer {
	at, options := c.binding(), &c.limiter.options
	c.countRules(at)
	if allowed && options.OnDecision == nil && !options.Expose {
		return Answer{}
	}
	var d Decision
	c.decision(&d, at)
	return c.answer(&d)
}

// countRules counts the decision of each rule that is not in DryRun, and whether it bound the call:
// binding is the place of the limit that did, and that represents its rule.
func (c *call) countRules(binding int) {
	for i := range c.asked {
		at := i
		if i != binding {
			if binding >= 0 && c.sameRule(i, binding) {
				continue
			}
			if at = c.representative(i, false); at < 0 {
				continue
			}
		}
		reason, source := c.outcome(at)
		c.asked[at].policy.tally.Count(string(reason), string(source), at == binding, c.stripe)
	}
}

// reportTried counts the decision of each rule in DryRun, and reports each to OnDecision by itself.
func (c *call) reportTried() {
	for i := range c.asked {
		if !c.asked[i].rule.DryRun {
			continue
		}
		at := c.representative(i, true)
		if at < 0 {
			continue
		}
		reason, source := c.outcome(at)
		c.asked[at].policy.tally.Count(string(reason), string(source), false, c.stripe)
		if c.limiter.options.OnDecision != nil && !c.asked[at].silent() {
			var d Decision
			c.decision(&d, at)
			c.report(&d)
		}
	}
}

// representative returns the place of the limit that represents the rule whose first limit is at i.
// It returns -1 if i is not the rule's first limit, if none of its limits was asked, or if tried
// does not say whether the rule is in DryRun. Rules of one name count as one, because callers and
// Stats know them by name. The limit that says most about the call represents the rule; a silent
// ban does so only if the rule has nothing else.
func (c *call) representative(i int, tried bool) (at int) {
	if c.asked[i].rule.DryRun != tried {
		return -1
	}
	for j := range i {
		if c.sameRule(i, j) {
			return -1
		}
	}
	at = -1
	if !c.unasked(i) {
		at = i
	}
	for j := i + 1; j < len(c.asked); j++ {
		switch {
		case !c.sameRule(i, j) || c.unasked(j):
		case at < 0 || c.asked[at].silent():
			at = j
		case !c.asked[j].silent() && c.bindsMore(j, at):
			at = j
		}
	}
	return at
}

// sameRule reports whether the limits at i and j are of one rule, or of rules of one name.
func (c *call) sameRule(i, j int) bool {
	a, b := &c.asked[i], &c.asked[j]
	return (a.policy == b.policy || a.policy.name == b.policy.name) && a.rule.DryRun == b.rule.DryRun
}

// decision fills d with what was decided, the binding limit first. For a rule in DryRun it lists
// only the limits of that rule.
func (c *call) decision(d *Decision, at int) {
	if at < 0 { // all rules are only tried
		first := &c.asked[0]
		d.Allowed, d.Reason, d.Rule, d.Limit, d.Source = true, Allowed, first.policy.name, *first.limit, FromNobody
		return
	}
	c.decisionAt(d, at)
	tried := c.asked[at].rule.DryRun
	for i := range c.asked {
		a := &c.asked[i]
		if i != at && a.rule.DryRun == tried && !a.silent() && !c.unasked(i) && (!tried || c.sameRule(i, at)) {
			if d.All == nil {
				d.All = []Decision{*d}
			}
			d.All = append(d.All, Decision{})
			c.decisionAt(&d.All[len(d.All)-1], i)
		}
	}
}

// binding returns the place of the limit that says most about the call, or -1 if callers see none.
func (c *call) binding() (at int) {
	at = -1
	for i := range c.asked {
		if c.asked[i].shown() && !c.unasked(i) && (at < 0 || c.bindsMore(i, at)) {
			at = i
		}
	}
	return at
}

// unasked reports whether the limit at i was not asked, because another one refused as it did just
// before. Such a limit is left out of headers, decisions and counts.
func (c *call) unasked(i int) bool { return c.verdicts[i].From == algorithm.FromNobody }

// bindsMore says whether the limit at i says more about the call as a whole than the one at j: a refusal before an allowance,
// and first one that can be waited for, a longer wait before a shorter one, what was counted before what was not, fewer permits
// left before more.
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

// outcome is what the limit at i makes of the call, and who says so; of none, when callers are told of none.
func (c *call) outcome(i int) (Reason, Source) {
	if i < 0 {
		return Allowed, FromNobody
	}
	a, v := &c.asked[i], &c.verdicts[i]
	switch {
	case v.Err == nil && v.RetryAfter == 0:
		return Allowed, sourceOf(v, c.limiter.source)
	case v.Err != nil && c.counters[i].Refuses(v):
		return StoreFailClosed, FromNobody
	case v.Err != nil:
		return StoreFailOpen, FromNobody
	case a.rule.DryRun:
		return DryRunExceeded, sourceOf(v, c.limiter.source)
	case a.banned:
		return Banned, sourceOf(v, c.limiter.source)
	default:
		return LimitExceeded, sourceOf(v, c.limiter.source)
	}
}

// decisionAt is the decision of one limit, in the zero Decision.
func (c *call) decisionAt(d *Decision, i int) {
	a, v := &c.asked[i], &c.verdicts[i]
	reason, source := c.outcome(i)
	d.fill(a.policy.name, a.limit, v, source)
	d.Key, d.Reason = string(c.subjects[a.from:a.to]), reason
	switch {
	case v.Err != nil:
		d.Allowed = reason == StoreFailOpen
		return
	case reason == DryRunExceeded:
		d.Allowed, d.RetryAfter = true, 0
	}
	if c.passed {
		d.receipt.fill(c.limiter, &c.counters[i], v, c.id+uint64(i))
	}
}
