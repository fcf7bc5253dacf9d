package core

// decide is the way of a call: which rules apply, who calls, the counters, the store, the answer.
func (c *call) decide(rules []*boundRule, subject string) Answer {
	needLogin := c.apply(rules)
	if len(c.applying) == 0 {
		return Answer{}
	}
	if err := c.Context().Err(); err != nil {
		return c.refuse(ContextEnded, &c.applying[0], err)
	}
	nobody := false
	if needLogin != nil {
		user, err := c.User()
		if err != nil {
			return c.refuse(IdentifyFailed, needLogin, err)
		}
		nobody = user == ""
	}
	if stopped, reason, err := c.count(nobody, subject); stopped != nil {
		return c.refuse(reason, stopped, err)
	}
	if len(c.counters) > 0 {
		c.limiter.store.Decide(c.Context(), c.counters, !nobody, c.verdicts)
		c.dropDoubtfulSlots()
		c.hearBans()
	}
	switch {
	case nobody && !c.overLimit() && !c.ended():
		return c.refuse(NotLoggedIn, needLogin, nil)
	case len(c.counters) == 0: // the call costs nothing, or has no limit
		first := &c.applying[0]
		return c.letPass(Decision{Allowed: true, Reason: Allowed, Rule: first.policy.name, Limit: first.limit, Source: FromNobody})
	}
	return c.settle()
}

// apply finds the rules that are for this call, and the first among them that needs a login.
func (c *call) apply(rules []*boundRule) (needLogin *asked) {
	login := -1
	for _, rule := range rules {
		if !rule.scope.applies(c) {
			continue
		}
		if rule.NeedLogin && login < 0 && !rule.DryRun {
			login = len(c.applying)
		}
		c.applying = append(c.applying, asked{rule: rule, policy: rule.policyFor(c), limit: rule.limits[0]})
	}
	if login < 0 {
		return nil
	}
	return &c.applying[login]
}

// hearBans lets the rule's own limit speak for the ban that stands behind it.
func (c *call) hearBans() {
	for i := range c.asked {
		wait := c.verdicts[i].RetryAfter
		if !c.asked[i].isBan || wait == 0 {
			continue
		}
		first := i - int(c.counters[i].Cost)
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

// settle makes the answer of what the store said, each rule's own policy standing in where it said nothing.
func (c *call) settle() Answer {
	allowed := true
	for i := range c.asked {
		a, v := &c.asked[i], &c.verdicts[i]
		if v.Ended != nil {
			return c.refuse(ContextEnded, a, v.Ended)
		}
		if v.Err != nil {
			c.limiter.complains.storeFailed(a.policy.name, a.rule.OnStoreError, v.Err)
		}
		if c.counters[i].Refuses(v) {
			allowed = false
			a.banned = a.banned || a.isBan && v.Err != nil // nobody else may speak for a ban that could not be asked
		}
	}
	c.passed = allowed
	c.writeHeaders(c.ResponseHeader())
	options := &c.limiter.options
	if options.OnDecision != nil {
		c.reportTried()
	}
	var answer Answer
	if !allowed || options.OnDecision != nil || options.Expose {
		answer = c.answer(c.decision())
	}
	if allowed {
		answer.unfinished = c.unfinished()
	}
	return answer
}

// reportTried tells of the rules that are only tried, each by itself.
func (c *call) reportTried() {
	for i := range c.asked {
		if a := &c.asked[i]; a.rule.DryRun && !a.isBan {
			c.limiter.options.OnDecision(c.Context(), c.decisionAt(i))
		}
	}
}

// decision is what was decided, the limit that binds first.
func (c *call) decision() Decision {
	at := c.binding()
	if at < 0 { // all rules are only tried
		return Decision{Allowed: true, Reason: Allowed, Rule: c.asked[0].policy.name, Limit: c.asked[0].limit, Source: FromNobody}
	}
	d := c.decisionAt(at)
	for i := range c.asked {
		if i != at && c.asked[i].told() {
			if d.All == nil {
				d.All = []Decision{d}
			}
			d.All = append(d.All, c.decisionAt(i))
		}
	}
	return d
}

// binding is the place of the limit that says most about the call; -1 when callers are told of none.
func (c *call) binding() (at int) { return c.bindingOf(false) }

func (c *call) bindingOf(answered bool) (at int) {
	at = -1
	var best Decision
	for i := range c.asked {
		if !c.asked[i].told() || answered && c.verdicts[i].Err != nil {
			continue
		}
		if len(c.asked) == 1 {
			return i
		}
		if d := c.decisionAt(i); at < 0 || d.bindsMore(&best) {
			at, best = i, d
		}
	}
	return at
}

// decisionAt is the decision of one limit.
func (c *call) decisionAt(i int) Decision {
	a, v := &c.asked[i], &c.verdicts[i]
	key := string(c.subjects[a.from:a.to])
	if v.Err != nil {
		d := Decision{Allowed: true, Reason: StoreFailOpen, Rule: a.policy.name, Key: key, Limit: a.limit, Source: FromNobody}
		if c.counters[i].Required && !c.counters[i].Dry {
			d.Allowed, d.Reason = false, StoreFailClosed
		}
		return d
	}
	d := decisionOf(a.policy.name, a.limit, v, c.limiter.source)
	d.Key = key
	if c.passed {
		d.receipt = c.receiptOf(i)
	}
	switch {
	case d.Allowed:
	case a.rule.DryRun:
		d.Allowed, d.Reason, d.RetryAfter = true, DryRunExceeded, 0
	case a.banned:
		d.Reason = Banned
	}
	return d
}
