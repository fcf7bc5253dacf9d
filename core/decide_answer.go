package core

import (
	"errors"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// refuseBy refuses the call by an applied rule, for a reason that no counter gave.
func (c *call) refuseBy(reason Reason, a *appliedRule, cause error) Answer {
	return c.refuse(reason, a.named, &a.rule.limits[0], cause)
}

func (c *call) refuse(reason Reason, rule *namedRule, limit *Limit, cause error) Answer {
	reason, cause = c.unidentified(reason, rule.name, cause)
	rule.tally.Count(string(reason), string(FromNobody), tally.Bound, &c.place)
	answer := c.answer(&Decision{Reason: reason, Rule: rule.name, Limit: *limit, Source: FromNobody})
	if reason == ContextEnded {
		answer.Refusal.endedBy(cause)
	}
	return answer
}

// unidentified logs that it is not known whom to count, if that is the reason. If it is because the
// caller left, that is the reason instead.
func (c *call) unidentified(reason Reason, rule string, cause error) (Reason, error) {
	if reason != IdentifyFailed {
		return reason, cause
	}
	if ended := c.Context().Err(); ended != nil {
		return ContextEnded, ended
	}
	c.logUnidentified(rule, "was refused", cause)
	return reason, cause
}

// logUnidentified logs why a rule does not know whom to count, and what became of the call.
func (c *call) logUnidentified(rule, then string, cause error) {
	if c.userErr != nil && errors.Is(cause, c.userErr) {
		c.limiter.operatorLog.IdentifyFailed(rule, then, cause)
		return
	}
	c.limiter.operatorLog.KeyFailed(rule, then, cause)
}

// answer reports a decision to OnDecision and returns the Answer to the adapter.
func (c *call) answer(d *Decision) Answer {
	c.report(d)
	if d.Allowed {
		return c.letPass(d)
	}
	return Answer{Refusal: c.refusal(d)}
}

// refusal returns the reply to a refused call.
func (c *call) refusal(d *Decision) *Refusal {
	o := outcomes[d.Reason]
	if d.Reason == CostTooHigh && c.bySize {
		o = tooLarge
	}
	refusal := c.limiter.newRefusal(d, o, c.message(d), c.violated(d))
	if c.limiter.options.Reply != nil {
		refusal = c.reply(*refusal)
	}
	return refusal
}

// letPass returns the Answer to an allowed call, with the decision for handlers if Expose is set, or
// if a soft limit is exceeded.
func (c *call) letPass(d *Decision) Answer {
	switch {
	case c.limiter.options.Expose:
		return Answer{Context: &exposed{Context: c.Context(), decision: d.inside(c.Context()), user: strings.Clone(c.user)}}
	case d.Reason == SoftExceeded:
		return Answer{Context: &exposed{Context: c.Context(), decision: *d}}
	default:
		return Answer{}
	}
}

// reply returns the refusal as Options.Reply changes it.
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

// message returns the sentence for a caller over a limit: the binding rule's Message, or ours.
func (c *call) message(d *Decision) string {
	if !d.overLimit() {
		return ""
	}
	binding := &c.limits[c.binding()]
	switch {
	case binding.rule.Message != "":
		return binding.rule.Message
	case binding.limit == &binding.ruleLimit.limit:
		return refusalMessage(d, binding.ruleLimit.phrase)
	default:
		return refusalMessage(d, d.Limit.phrase())
	}
}

// violated returns the limits that a refused caller is over, as the headers name them.
func (c *call) violated(d *Decision) (titles []string) {
	if !d.overLimit() || d.Reason == Blocked {
		return nil
	}
	for i := range c.limits {
		if c.limits[i].shown() && c.verdicts[i].RetryAfter > 0 {
			titles = append(titles, c.limits[i].ruleLimit.title)
		}
	}
	return titles
}
