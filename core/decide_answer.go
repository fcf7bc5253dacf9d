package core

import (
	"errors"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// answerTo answers the call by a ruling or, if that is nil, by the limit that binds it.
func (c *call) answerTo(r *ruling) Answer {
	switch {
	case r == nil:
		return c.answerVerdicts(c.Binding())
	case r.reason == Allowed:
		return c.passUncounted()
	default:
		return c.refuse(r)
	}
}

// passUncounted answers a call that has no counter.
func (c *call) passUncounted() Answer {
	var d Decision
	d.fillUnlimited(c.rules[0].named.name, "")
	answer := c.letPass(&d)
	answer.completion = c.completion(c.Context(), c.isRPC()) // its handler may settle what was not counted
	return answer
}

// answerVerdicts answers the call by the limit at a place, which binds it. It makes the Decision,
// which is large, only if something reads it: a call would take 19 to 59 % longer otherwise ("named"
// and "core alone, no headers" in BenchmarkCheck).
func (c *call) answerVerdicts(at int) (answer Answer) {
	if c.headers.Style != limitheader.None {
		c.writeHeaders(c.ResponseHeader())
	}
	c.Notice(at)
	if options := &c.parts.options; !c.Passed() || options.OnDecision != nil || options.Expose || c.SoftExceeded(at) {
		answer = c.answerDecision(at)
	}
	if c.Passed() && (c.learns != 0 || c.Holder() != "") {
		answer.completion = c.completion(c.Context(), c.isRPC())
	}
	return answer
}

// writeHeaders tells the caller what was decided.
func (c *call) writeHeaders(w adapter.HeaderWriter) {
	for i := range c.Len() {
		if v := c.Verdict(i); v.Err == nil && !c.Unasked(i) {
			policy := &c.preparedAt(i).policy
			if c.looksFurtherOut && c.headers.Has(w, policy) {
				c.repeated = c.ruleOf(i)
			}
			c.headers.Add(limitheader.Limit{Policy: policy, Counter: c.Counter(i), Verdict: v, Unit: c.ruleOf(i).unit})
		}
	}
	c.headers.Write(w, !c.Passed())
}

// answerDecision is not inlined, because most calls do not need the room for a Decision.
//
//go:noinline
func (c *call) answerDecision(at int) Answer {
	var d Decision
	c.fillDecision(&d, at, "")
	return c.answer(&d)
}

// refuse refuses the call for a reason that no counter gave.
func (c *call) refuse(r *ruling) Answer {
	rule := r.by.named
	reason, cause := c.orCallerLeft(r.reason, rule.name, r.cause)
	if reason == CostTooHigh {
		c.unit = r.by.unit
	}
	rule.tally.Count(string(reason), string(FromNobody), tally.Bound, &c.place)
	answer := c.answer(&Decision{Reason: reason, Rule: rule.name, Limit: *r.limit, Source: FromNobody})
	if reason == ContextEnded {
		answer.Refusal.endedBy(cause)
	}
	return answer
}

// orCallerLeft returns the reason to refuse a call. It logs that it is not known whom to count, if
// that is the reason. If it is because the caller left, that is the reason instead.
func (c *call) orCallerLeft(reason Reason, rule string, cause error) (Reason, error) {
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
		c.log.IdentifyFailed(rule, then, cause)
		return
	}
	c.log.KeyFailed(rule, then, cause)
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
	o := replies[d.Reason]
	if d.Reason == CostTooHigh && c.unit > 0 {
		o = tooLarge
	}
	refusal := newRefusal(c.parts.references, d, o, c.message(d), c.violated(d))
	if c.parts.options.Reply != nil {
		refusal = c.reply(*refusal)
	}
	return refusal
}

// letPass returns the Answer to an allowed call, with the decision for handlers if Expose is set, or
// if a soft limit is exceeded.
func (c *call) letPass(d *Decision) Answer {
	switch {
	case c.parts.options.Expose:
		return Answer{Context: &exposed{Context: c.Context(), decision: d.inside(c.Context()), user: strings.Clone(c.user)}}
	case d.Reason == SoftExceeded:
		return Answer{Context: &exposed{Context: c.Context(), decision: *d}}
	default:
		return Answer{}
	}
}

// reply returns the refusal as Options.Reply changes it.
func (c *call) reply(ours Refusal) *Refusal {
	theirs := c.parts.options.Reply(c, ours)
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
	at := c.Binding()
	switch prepared := c.preparedAt(at); {
	case c.ruleOf(at).rule.Message != "":
		return c.ruleOf(at).rule.Message
	case c.limitAt(at) == &prepared.limit:
		return refusalMessage(d, prepared.phrase)
	default:
		return refusalMessage(d, d.Limit.terms().Phrase())
	}
}

// violated returns the limits that a refused caller is over, as the headers name them.
func (c *call) violated(d *Decision) (titles []string) {
	if !d.overLimit() || d.Reason == Blocked {
		return nil
	}
	for i := range c.Len() {
		if c.Limit(i).Shown() && c.Verdict(i).RetryAfter > 0 {
			titles = append(titles, c.preparedAt(i).policy.Title)
		}
	}
	return titles
}

// report passes a decision on the call to OnDecision.
func (c *call) report(d *Decision) {
	if c.parts.options.OnDecision == nil {
		return
	}
	e := c.event()
	e.Decision = *d
	c.parts.options.OnDecision(c.Context(), e)
}

// event returns what OnDecision is told of the call.
func (c *call) event() Event {
	return Event{Method: strings.Clone(c.Method()), Route: strings.Clone(c.Route()), Path: strings.Clone(c.Path()), ClientIP: c.ClientIP()}
}
