package core

// A shared limit is one that does not depend on who calls: by IP, by route, global.

// perUser reports whether the rule counts this call by user. A rule that once asked for the user is
// assumed to ask again.
func (a *appliedRule) perUser() bool { return a.rule.NeedLogin || a.named.readsUser.Load() }

// refusedForEveryone reports whether a shared limit refused a call just before, and refuses this
// one too. Then there is no need to identify the caller. The verdicts are those of the shared
// limits alone: a caller whom a limit of their own refuses for longer, or who is banned, learns
// that when the shared limit lets them pass again. Call it only if refusals are remembered.
func (c *call) refusedForEveryone() bool {
	if !c.mayRepeatShared() {
		return false
	}
	if c.addShared() && c.Recall() {
		return true
	}
	c.Drop()
	return false
}

// mayRepeatShared reports whether some rules count by user, and a shared limit may refuse the call
// in their place. It may not if a soft rule has to be asked about the call, or if the cost of
// the call may be too high for a rule by user. The status of an answer must not depend on what is
// remembered.
func (c *call) mayRepeatShared() bool {
	if c.parts.options.Identify == nil {
		return false
	}
	some := false
	for i := range c.rules {
		a := &c.rules[i]
		perUser := a.perUser()
		if a.rule.Mode != Enforce || perUser && a.rule.price != nil {
			return false
		}
		some = some || perUser
	}
	return some
}

// ruleUnidentified returns the ruling on a call whose caller or subject could not be determined. If a
// shared limit refuses the call, that is the ruling, as it is for anonymous callers. Nothing is
// charged.
func (c *call) ruleUnidentified(a *appliedRule, cause error) *ruling {
	c.Drop()
	if a.perUser() && c.Context().Err() == nil && c.addShared() {
		if c.consult(c.Context(), false) && c.OverLimit() && c.Ended() < 0 {
			return c.ruleByVerdicts()
		}
	}
	return c.ruleBy(IdentifyFailed, a, cause)
}

// addShared adds the counters of the shared limits, and reports whether there are any, or a mark that
// refuses the call. They will not be charged.
func (c *call) addShared() bool {
	defer c.LookOnly(c.LooksOnly())
	c.LookOnly(true)
	defer func() { c.deciding = nil }()
	for i := range c.rules {
		a := &c.rules[i]
		if a.rule.Mode != Enforce || a.perUser() {
			continue
		}
		c.deciding = a.named
		if c.addRule(a) != nil {
			return false
		}
	}
	return c.Len() > 0 || c.IsMarked()
}
