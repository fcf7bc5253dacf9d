package operate

import (
	"context"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// Explain reports how the attached rules would decide a call now. For every rule of a Guard or a
// Check it shows whether the rule applies and why, the subject, the limits in force and where they
// come from, what is used of them, and which rule would refuse. Nothing is charged. It does not
// count as a call, as a strike of a ban, or in Stats, and OnDecision is not called. The store is
// always asked: neither a refusal that is remembered nor a leased permit is the answer.
//
// The functions of the rules and Identify run as in a call. Request.Value finds what is in the
// context. If a function fails or panics, that is the rule's error. Only the framework knows which
// Guards a call passes, and in which order. Explain assumes that Guards which were called for more
// routes come first, then those that were attached earlier, and last the Checks. It leaves out
// those that are Elsewhere. A Check whose handler passes subjects of its own is not decided: use
// Inspect with the subject. A Guard that the service has dropped is not shown.
//
// Redis gets a trip for each 16 counters, of at most 4,000, and for each rule that imposes bans. All
// such reads of a process, and its lists, have at most four trips under way together, so that calls
// do not wait. If it does not answer within Timeout, the error is a *[core.StoreError], and the
// Explanation has what is known without it, also bans and overrides. The other errors are that of the
// context and, for a nil Limiter, a *[core.RuleError].
func (o *Operator) Explain(ctx context.Context, call Call) (Explanation, error) {
	if err := o.made(); err != nil {
		return Explanation{}, err
	}
	x := o.newExplanation(ctx)
	calls, _ := x.trial.Notes()
	x.explain(newCallView(ctx, call, calls), limiter.Caller{User: call.User, Known: call.User != "" || call.Anonymous})
	if call.MaxCommands > 0 {
		x.askAtMost(call.MaxCommands)
	}
	return x.finish(ctx)
}

// ExplainView is like [Operator.Explain] for a call that an adapter shows. It takes the context from
// the view.
func (o *Operator) ExplainView(v adapter.View) (Explanation, error) {
	if err := o.made(); err != nil {
		return Explanation{}, err
	}
	x := o.newExplanation(v.Context())
	x.explain(v, limiter.Caller{})
	return x.finish(v.Context())
}

// Inspect reports what the attached rules have counted for a subject, such as user:alice or the
// result of [core.Limiter.IPSubject]: what is used of the rule's own limit, of Also, and of each of
// Plans, the override, and the ban. It shows every rule of a Guard or a Check, but rules of one
// name only once, and a rule without a name for each route that this process was called for. If
// LimitFor has returned limits in this process, Inspect shows those whose window no other limit of
// the rule has. One entry without a number stands for all other results of LimitFor. Handles are shown
// like rules, the first 1,000 that this process made and of which something is used.
//
// Rules that do not count by this subject show that nothing is used. Reason is the one of a call
// that takes one permit. It is "" if that depends on the plan or on LimitFor.
//
// Inspect charges nothing, and takes as many trips as Explain. Its errors are those of
// [Operator.Explain], and a *[core.RuleError] for a subject that is "" or a bare address.
func (o *Operator) Inspect(ctx context.Context, subject string) (Explanation, error) {
	if err := o.checkSubject(subject); err != nil {
		return Explanation{}, err
	}
	x, rules := o.ofSubject(ctx, subject)
	return x.inspect(ctx, rules)
}

// InspectPart is like [Operator.Inspect] for a part of the rules, in the order of their names. The
// part begins behind the name after. It has as many rules as Redis can answer for in that many
// commands, and at least those of one name. next is the after of the next part, or "" if this is the
// last one. So programs for operators can show thousands of rules without delaying calls.
func (o *Operator) InspectPart(ctx context.Context, subject, after string, commands int) (x Explanation, next string, err error) {
	if err := o.checkSubject(subject); err != nil {
		return Explanation{}, "", err
	}
	making, rules := o.ofSubject(ctx, subject)
	rules, next = partOf(rules, after, commands)
	x, err = making.inspect(ctx, rules)
	return x, next, err
}
