package core

import "github.com/accesslimit/accesslimit/core/internal/algorithm"

// decide is the way of a call: which rules apply, who calls, the counters, the store, the answer.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	needLogin := c.apply(rules)
	if len(c.applying) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuse(ContextEnded, &c.applying[0], err)
	}
	if c.limiter.near != nil && c.refusedForAll(subject) {
		return c.settle()
	}
	nobody := false
	if needLogin != nil {
		user, err := c.User()
		if err != nil {
			return c.unidentified(needLogin, err, subject)
		}
		nobody = user == ""
	}
	switch stopped, reason, err := c.count(nobody, subject); {
	case stopped != nil && reason == IdentifyFailed:
		return c.unidentified(stopped, err, subject)
	case stopped != nil:
		return c.refuse(reason, stopped, err)
	}
	c.ask(!nobody)
	switch {
	case nobody && !c.overLimit() && !c.ended():
		return c.refuse(NotLoggedIn, needLogin, nil)
	case len(c.counters) == 0: // the call costs nothing, or has no limit
		first := &c.applying[0]
		return c.letPass(&Decision{Allowed: true, Reason: Allowed, Rule: first.policy.name, Limit: *first.limit, Source: FromNobody})
	}
	return c.settle()
}

// ask decides over the counters, and charges them if charge is set.
func (c *call) ask(charge bool) {
	if len(c.counters) == 0 {
		return
	}
	if outer := c.limiter.outer.Load(); outer != nil {
		c.compareWith(outer)
	}
	if near := c.limiter.near; near != nil && !charge {
		near.Look(c.Context(), c.counters, c.verdicts)
	} else {
		c.limiter.store.Decide(c.Context(), c.counters, charge, c.verdicts)
	}
	if c.fits() { // nearly always, and then nothing below has anything to do
		c.passed = charge
		return
	}
	c.limiter.dropDoubtfulSlots(c.counters, c.verdicts)
	c.hearBans()
	c.passed = charge && c.passes()
	c.storeFailures()
}

// fits reports whether all counters were asked, and the call fits in each.
func (c *call) fits() bool {
	for i := range c.verdicts {
		if v := &c.verdicts[i]; v.RetryAfter != 0 || v.Ended != nil || v.Failure() != nil {
			return false
		}
	}
	return true
}

// apply finds the rules that are for this call, and the first among them that needs a login.
func (c *call) apply(rules []*boundRule) (needLogin *asked) {
	login := -1
	for _, rule := range rules {
		if !rule.scope.applies(c) || rule.Skip != nil && c.skips(rule) {
			continue
		}
		if rule.NeedLogin && login < 0 && !rule.DryRun {
			login = len(c.applying)
		}
		policy := rule.policyFor(c)
		c.applying = append(c.applying, asked{})
		a := &c.applying[len(c.applying)-1] // filled where it stands: see addCounter
		a.rule, a.policy, a.limit = rule, policy, &rule.limits[0]
	}
	if login < 0 {
		return nil
	}
	return &c.applying[login]
}

// skips calls the rule's Skip.
func (c *call) skips(rule *boundRule) bool {
	c.deciding = rule.policyFor(c)
	defer func() { c.deciding = nil }()
	return rule.Skip(c)
}

// hearBans lets the rule's own limit speak for the ban that stands behind it.
func (c *call) hearBans() {
	for i := range c.asked {
		wait := c.verdicts[i].RetryAfter
		if !c.asked[i].isBan || wait == 0 {
			continue
		}
		first := i
		if watched := c.counters[i].Watched; len(watched) > 0 {
			first = watched[0]
		}
		c.asked[first].banned = true
		v := &c.verdicts[first]
		v.RetryAfter, v.Remaining = max(v.RetryAfter, wait), 0
	}
}

// overLimit says whether a counter refused. A caller who is nobody hears that before being asked to log in: a limit that
// needs no login holds for them too, though they are not charged.
func (c *call) overLimit() bool {
	for i := range c.verdicts {
		if c.verdicts[i].RetryAfter > 0 && !c.counters[i].Dry {
			return true
		}
	}
	return false
}

// ended says whether the caller's own context ended while the store was asked.
func (c *call) ended() bool {
	for i := range c.verdicts {
		if c.verdicts[i].Ended != nil {
			return true
		}
	}
	return false
}

// passes reports whether no counter refuses the call, and its caller is still there.
func (c *call) passes() bool { return !c.ended() && algorithm.Passes(c.counters, c.verdicts) }

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
		c.asked[at].policy.tally.count(reason, source, at == binding, c.stripe)
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
		c.asked[at].policy.tally.count(reason, source, false, c.stripe)
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
