package core

// personal reports whether the rule counts this call by who calls.
func (a *asked) personal() bool { return a.rule.NeedLogin || a.policy.asksUser.Load() }

// refusedForAll reports whether a limit that does not depend on who calls refused a call just
// before, and refuses this one too. Then nobody has to be identified. The verdicts are those of
// such limits alone.
//
// Nothing else is told then: a caller whom a limit of their own refuses for longer, or who is
// banned, learns that when the shared limit lets them pass again. But a call that a rule in DryRun
// has to count, or that may cost too much for a rule by user, is decided as a whole.
func (c *call) refusedForAll(given string) bool {
	local := c.limiter.local
	if local == nil || c.limiter.options.Identify == nil {
		return false
	}
	personal := false
	for i := range c.applying {
		a := &c.applying[i]
		if a.rule.DryRun || a.personal() && a.rule.Cost != nil {
			return false
		}
		personal = personal || a.personal()
	}
	if !personal {
		return false
	}
	c.recalls = true
	refused := c.countForAll(given) && local.Recall(c.counters, c.verdicts)
	c.recalls = false
	if !refused {
		c.dropCounters()
		return false
	}
	c.hearBans()
	return true
}

// unidentified answers a call whose caller or subject could not be found out. A limit that does not
// depend on the user is looked at first, without a charge, as for callers who are not logged in. If
// it refuses, the answer is its refusal.
func (c *call) unidentified(a *asked, cause error, given string) Answer {
	c.dropCounters()
	if a.personal() && c.Context().Err() == nil && c.countForAll(given) {
		if c.ask(false); c.overLimit() && !c.ended() {
			return c.settle()
		}
	}
	return c.refuse(IdentifyFailed, a, cause)
}

// countForAll adds the counters that do not depend on who calls. It reports whether there are any.
func (c *call) countForAll(given string) bool {
	for len(c.weighed) < len(c.applying) {
		c.weighed = append(c.weighed, weighed{})
	}
	defer func() { c.deciding = nil }()
	for i := range c.applying {
		a := &c.applying[i]
		if a.rule.DryRun || a.personal() {
			continue
		}
		c.deciding = a.policy
		if !c.weighed[i].known {
			w, err := c.weigh(a, given)
			if err != nil { // the rule runs again in its turn, and answers the error
				return false
			}
			c.weighed[i] = w
		}
		if reason, _ := c.countRule(i, given); reason != Allowed {
			return false
		}
	}
	return len(c.counters) > 0
}

// dropCounters removes all counters of the call.
func (c *call) dropCounters() {
	c.counters, c.verdicts, c.asked = c.counters[:0], c.verdicts[:0], c.asked[:0]
}
