package core

import "strings"

// refuse answers a call for a reason that no counter gave.
func (c *call) refuse(reason Reason, a *asked, cause error) Answer {
	ended := c.Context().Err()
	if reason == IdentifyFailed {
		if ended != nil {
			reason, cause = ContextEnded, ended // who calls could not be asked because the caller left
		} else {
			c.limiter.complains.identifyFailed(a.policy.name, cause)
		}
	}
	a.policy.tally.Count(string(reason), string(FromNobody), true, c.stripe)
	answer := c.answer(&Decision{Reason: reason, Rule: a.policy.name, Limit: *a.limit, Source: FromNobody})
	if reason == ContextEnded {
		answer.Refusal.endedBy(cause)
	}
	return answer
}

// answer reports a decision to OnDecision, and makes the response of a refusal.
func (c *call) answer(d *Decision) Answer {
	c.report(d)
	if d.Allowed {
		return c.letPass(d)
	}
	o := outcomes[d.Reason]
	if d.Reason == CostTooHigh && c.bySize {
		o = tooLarge
	}
	refusal := newRefusal(d, o, c.message(d), c.violated(d))
	if c.limiter.options.Reply != nil {
		refusal = c.reply(*refusal)
	}
	return Answer{Refusal: refusal}
}

// letPass hands the call on, with what was decided where handlers are to see it.
func (c *call) letPass(d *Decision) Answer {
	if !c.limiter.options.Expose {
		return Answer{}
	}
	return Answer{Context: &exposed{Context: c.Context(), decision: *d, user: strings.Clone(c.user)}}
}

// reply lets the owner's Reply word a refusal.
func (c *call) reply(ours Refusal) *Refusal {
	theirs := c.limiter.options.Reply(c, ours)
	if 200 <= theirs.Status && theirs.Status <= 599 {
		ours.Status = theirs.Status
	}
	if theirs.ContentType != "" {
		ours.ContentType = theirs.ContentType
	}
	ours.Body = theirs.Body
	return &ours
}

// message is what a caller over a limit reads: the words of the rule that binds, or ours.
func (c *call) message(d *Decision) string {
	if !d.overLimit() {
		return ""
	}
	binding := &c.asked[c.binding()]
	switch {
	case binding.rule.Message != "":
		return binding.rule.Message
	case binding.limit == &binding.quota.limit:
		return wording(d, binding.quota.phrase)
	default:
		return wording(d, d.Limit.phrase())
	}
}

// violated are the limits that a refused caller is over, as the headers call them.
func (c *call) violated(d *Decision) (titles []string) {
	if !d.overLimit() {
		return nil
	}
	for i := range c.asked {
		if c.asked[i].shown() && c.verdicts[i].RetryAfter > 0 {
			titles = append(titles, c.asked[i].quota.title)
		}
	}
	return titles
}
