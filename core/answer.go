package core

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
	answer := c.answer(Decision{Reason: reason, Rule: a.policy.name, Limit: a.limit, Source: FromNobody})
	if reason == ContextEnded {
		answer.Refusal.endedBy(cause)
	}
	return answer
}

// answer tells who wants to know, and puts a refusal on the wire.
func (c *call) answer(d Decision) Answer {
	options := &c.limiter.options
	if options.OnDecision != nil {
		options.OnDecision(c.Context(), d)
	}
	if d.Allowed {
		return c.letPass(d)
	}
	refusal := newRefusal(d, c.message(&d), c.violated(&d))
	if options.Reply != nil {
		refusal = c.reply(*refusal)
	}
	return Answer{Refusal: refusal}
}

// letPass hands the call on, with what was decided where handlers are to see it.
func (c *call) letPass(d Decision) Answer {
	if !c.limiter.options.Expose {
		return Answer{}
	}
	return Answer{Context: &exposed{Context: c.Context(), decision: d, user: c.user}}
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

// message is what the rule that binds has its owner's words for, "" for ours.
func (c *call) message(d *Decision) string {
	if !d.overLimit() {
		return ""
	}
	return c.asked[c.binding()].rule.Message
}

// violated are the limits that a refused caller is over, as the headers call them.
func (c *call) violated(d *Decision) (titles []string) {
	if !d.overLimit() {
		return nil
	}
	for i := range c.asked {
		if c.asked[i].told() && c.verdicts[i].RetryAfter > 0 {
			titles = append(titles, c.asked[i].quota.title)
		}
	}
	return titles
}
