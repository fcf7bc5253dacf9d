package core

import (
	"context"
	"net/http"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
)

// Answer is the result of a check, which an adapter carries out. The headers that tell the caller
// the limits are already set.
type Answer struct {
	// Refusal is sent in place of the handler's reply. If it is nil, the call goes on.
	Refusal *Refusal
	// Context, if not nil, replaces the call's own context for the handler. See Options.Expose and
	// [Settle].
	Context context.Context

	// completion is what Run does around the handler and after it. A further field would make an Answer too
	// large for registers, and a call 8 % slower ("core alone, no headers" in BenchmarkCheck).
	completion *inflight.Completion
}

// Final reports whether the limiter has nothing to do after the handler, as for most calls that go
// on. Then an adapter may call the handler itself, instead of through Run and Watch.
func (a Answer) Final() bool { return a.completion == nil }

// Run runs the handler of a call that goes on. Afterwards, even if the handler panics, it gives
// back what rules with Count or Concurrency require. handle returns the outcome: the HTTP status,
// or 0 if the handler returned without choosing one; for gRPC, the code. An adapter calls Run for
// every call that is not refused, unless the answer is [Answer.Final].
func (a Answer) Run(handle func() (status int)) {
	a.completion.Run(handle)
}

// Watch returns the writer for the handler of a call that goes on, and the Response that follows
// its reply. An adapter runs the handler in [Answer.Run]. When Run has returned, also by a panic,
// it calls Response.Finish. If nothing may have to be given back, Watch returns w itself and nil.
//
// A client that knows the length of a body knows its end before the handler has returned. It could
// then call again before the permit or the slot is given back. So the last byte is held back until
// Finish. It is sent earlier if the handler flushes or takes over the connection.
func (a Answer) Watch(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *adapter.Response) {
	// The end of a stream of HTTP/2 is sent when the handler has returned.
	holds := r.ProtoMajor == 1 && r.Method != http.MethodHead
	if u := a.completion; !u.NeedsStatus() && !(holds && u.HoldsReply()) {
		return w, nil
	}
	followed, reply := adapter.Follow(w, holds)
	a.completion.Follow(reply)
	return followed, reply
}

// completion returns what an allowed call has to give back later, or nil. isRPC reports whether the
// outcome of the call is a gRPC code.
func (c *decider) completion(ctx context.Context, isRPC bool) (u *inflight.Completion) {
	for i := range c.Len() {
		if c.ruleOf(i).rule.Count == nil && c.Holder() == "" { // nearly always
			continue
		}
		counter, count := c.Counter(i), c.counts(i)
		if slots := counter.Limit.Properties().Slots; !slots && (count == nil || c.estimateAt(i) >= 0) {
			continue
		}
		charge := counter.Charged(c.Verdict(i))
		if charge.Cost == 0 {
			continue
		}
		if u == nil {
			u = c.newCompletion(ctx, isRPC)
		}
		u.Add(charge, c.ID()+uint64(i), count)
	}
	if c.settles() {
		if u == nil {
			u = c.newCompletion(ctx, isRPC)
		}
		c.addEstimates(u)
	}
	return u
}

// addEstimates adds the estimates that the handler of the call can settle to its completion.
func (c *decider) addEstimates(u *inflight.Completion) {
	e := c.parts.inFlight.NewEstimates()
	for at := range c.rules {
		if a := &c.rules[at]; a.rule.terms != nil {
			e.AddRule(a.named.name, a.rule.terms.MaxDebt, a.named.tally.Costs())
			c.addEstimate(e, at)
		}
	}
	u.Settles(e)
}

// addEstimate adds what the rule at an index charged.
func (c *decider) addEstimate(e *inflight.Estimates, at int) {
	for i := range c.Len() {
		counter := c.Counter(i)
		if !c.Passed() || c.estimateAt(i) != at || counter.Limit.Properties().Slots {
			continue
		}
		if charge := counter.Charged(c.Verdict(i)); charge.Cost > 0 {
			e.Add(charge, c.plainCost(i), c.counts(i), c.chargedLater(i))
		}
	}
}

// plainCost returns the largest cost that is no estimate among those of the rules that have the
// counter at i.
func (c *decider) plainCost(i int) (cost int64) {
	a := c.Limit(i)
	for _, of := range append([]*engine.Applied{a.Applied}, a.Merged...) {
		if c.rules[of.At].rule.terms == nil {
			cost = max(cost, of.Cost)
		}
	}
	return cost
}

// letSettle lets the handler of a call that goes on settle what was charged. The handler that a Check
// is part of runs already, so its context is to be settleable, and nothing carries out a completion.
func (c *call) letSettle(answer Answer, behind []*inflight.Behind) Answer {
	if answer.Refusal != nil {
		return answer
	}
	estimates := answer.completion.Estimates()
	if c.check != nil {
		if s := settleableFor(c.Context(), c.check); s != nil {
			s.add(estimates, behind, c.skipped)
		}
		answer.completion = nil
		return answer
	}
	if answer.Context == nil {
		answer.Context = c.Context()
	}
	s := &settleable{Context: answer.Context, outer: settleableIn(answer.Context), parts: c.parts}
	s.add(estimates, behind, c.skipped)
	answer.Context = s
	return answer
}

func (c *decider) newCompletion(ctx context.Context, isRPC bool) *inflight.Completion {
	options := &c.parts.options
	shown := options.Expose || options.OnDecision != nil || c.HasSoft()
	return c.parts.inFlight.NewCompletion(ctx, isRPC, shown)
}

// counts returns the Count of the limit at i. If several rules have its counter, the call counts if
// one of them says so. nil counts every call.
func (c *decider) counts(i int) func(status int) bool {
	a := c.Limit(i)
	if a.IsMark {
		return nil
	}
	count := c.rules[a.At].rule.Count
	for _, other := range a.Merged {
		count = eitherCounts(count, c.rules[other.At].rule.Count)
	}
	return count
}

// eitherCounts returns the Count of a charge that two rules share.
func eitherCounts(a, b func(status int) bool) func(status int) bool {
	if a == nil || b == nil {
		return nil
	}
	return func(status int) bool { return a(status) || b(status) }
}

// abandon ends a call as a panic in its handler would. It is for a call that was not decided,
// because a function of the service owner's panicked, such as OnDecision after the charge.
func (c *call) abandon() {
	if c.Passed() { // otherwise this call charged nothing
		c.completion(c.Context(), c.isRPC()).Abandon()
	}
}

// isRPC reports whether the outcome of the call is a gRPC code.
func (c *call) isRPC() bool { return c.Method() == "" }
