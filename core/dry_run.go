package core

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// A rule in DryRun is decided behind the answer to the call. Its functions run in the call, and its
// question to the store is one of its own, as if it were in force. So the engine and the stores know
// nothing of dry runs.

// dryRun decides one call by the rules in DryRun of one name. It comes from a pool.
type dryRun struct {
	decider
	passed   bool      // the call goes on; if not, the dry run only looks
	answered time.Time // when that was known; zero if the dry run is decided at once
	unknown  bool      // the subject is not known
	isRPC    bool
	ctx      context.Context  // for OnDecision; nil unless it is set
	event    Event            // what OnDecision is told of the call
	behind   *inflight.Behind // nil if nothing follows the question
	run      func()           // decide, made once
}

// dryRuns are the dry runs of a limiter.
type dryRuns struct {
	pool  sync.Pool
	queue *inflight.Queue
}

func newDryRuns(parts *callParts, queue *inflight.Queue) *dryRuns {
	t := &dryRuns{queue: queue}
	t.pool.New = func() any {
		d := new(dryRun)
		d.init(parts)
		d.run = d.decide
		return d
	}
	return t
}

// close empties a dry run and puts it back.
func (t *dryRuns) close(d *dryRun) {
	d.clear()
	d.unknown, d.answered, d.ctx, d.event, d.behind = false, time.Time{}, nil, Event{}, nil
	t.pool.Put(d)
}

// try applies a rule in DryRun, in whose scope the call is.
func (c *call) try(rule *boundRule) {
	switch named := rule.namedFor(c.View, c.log); {
	case rule.Skip == nil || !c.skips(rule):
		c.tried = append(c.tried, appliedRule{rule: rule, named: named, own: named.limits[0], counted: engine.Applied{Rule: &named.counted}})
	case rule.terms != nil:
		c.skipped = append(c.skipped, named.name)
	}
}

// decideBesideDryRuns is decide for a call with rules in DryRun.
func (c *call) decideBesideDryRuns() Answer {
	first := c.tried[0].named.name
	if c.Context().Err() == nil {
		c.askDryRuns()
	} else {
		c.tried = c.tried[:0]
	}
	answer := c.decideInForce()
	if len(c.rules) == 0 && c.parts.options.Expose { // the user, too
		var d Decision
		d.fillUnlimited(first, "")
		answer = c.letPass(&d)
	}
	behind := c.startDryRuns(answer.Refusal == nil)
	for _, b := range behind {
		if answer.completion == nil {
			answer.completion = c.newCompletion(c.Context(), c.isRPC())
		}
		answer.completion.Tells(b)
	}
	behind = slices.DeleteFunc(behind, func(b *inflight.Behind) bool { return len(b.Rules()) == 0 })
	if c.settles() || len(c.skipped) > 0 || len(behind) > 0 {
		return c.letSettle(answer, behind)
	}
	return answer
}

// askDryRuns runs the functions of the rules in DryRun, and keeps the rules that have a question. Nothing
// is to be settled for the others.
func (c *call) askDryRuns() {
	asks := c.tried[:0]
	for i := range c.tried {
		a := &c.tried[i]
		c.deciding = a.named
		counts, err := c.askRule(a)
		if err != nil || counts && a.mayRefuse() {
			asks = append(asks, *a)
		} else {
			c.drop(a)
		}
	}
	c.tried, c.deciding = asks, nil
}

// mayRefuse reports whether a limit of the rule or a mark may refuse the call.
func (a *appliedRule) mayRefuse() bool {
	return a.counted.Own != nil || a.counted.Mark != nil
}

// startDryRuns starts the dry runs of a call that was answered. It returns what has to learn how the
// call ends.
func (c *call) startDryRuns(passed bool) (behind []*inflight.Behind) {
	t := c.parts.dryRuns
	for len(c.tried) > 0 {
		named := c.tried[0].named
		if !t.queue.Enter() {
			c.takeTried(named.name, c.drop)
			named.tally.DryRuns().Drop()
			continue
		}
		d := t.pool.Get().(*dryRun)
		d.passed, d.isRPC = passed, c.isRPC()
		if !t.queue.AtOnce() {
			d.answered = time.Now()
		}
		if d.traits = 0; !passed {
			d.traits = tally.Refused
		}
		c.takeTried(named.name, d.take)
		if c.parts.options.OnDecision != nil {
			d.ctx, d.event = context.WithoutCancel(c.Context()), c.event()
		}
		if b := d.start(t.queue); b != nil {
			behind = append(behind, b)
		}
	}
	return behind
}

// takeTried removes the rules in DryRun of a name.
func (c *call) takeTried(name string, take func(*appliedRule)) {
	rest := c.tried[:0]
	for i := range c.tried {
		if a := &c.tried[i]; a.named.name == name {
			take(a)
		} else {
			rest = append(rest, *a)
		}
	}
	c.tried = rest
}

// drop drops a rule that applies. Nothing is to be settled for it.
func (c *call) drop(a *appliedRule) {
	if a.rule.terms != nil {
		c.skipped = append(c.skipped, a.named.name)
	}
}

// take takes a rule that applies, with copies of what a framework may have lent.
func (d *dryRun) take(a *appliedRule) {
	from := len(d.subjects)
	d.subjects = append(d.subjects, a.counted.Subject...)
	at := len(d.rules)
	d.rules = append(d.rules, *a)
	taken := &d.rules[at]
	taken.counted.At, taken.counted.Subject, taken.counted.Note = at, d.subjects[from:len(d.subjects):len(d.subjects)], strings.Clone(a.counted.Note)
	d.learns |= a.rule.learns
	d.unknown = d.unknown || a.err != nil
	taken.err = nil
}

// start starts the dry run. It returns what has to learn how the call ends, or nil.
func (d *dryRun) start(queue *inflight.Queue) *inflight.Behind {
	if !d.passed || d.learns == 0 && !d.takesSlots() {
		queue.Start(d.run)
		return nil
	}
	b := queue.NewBehind()
	for i := range d.rules {
		a := &d.rules[i]
		b.AddRule(a.named.name, a.rule.terms != nil, a.rule.Count != nil)
	}
	d.behind = b
	b.Then(d.run)
	return b
}

// takesSlots reports whether the call takes slots of Concurrency.
func (d *dryRun) takesSlots() bool {
	for i := range d.rules {
		if d.rules[i].counted.TakesSlots() {
			return true
		}
	}
	return false
}

// decide decides the call, and reports the decision.
func (d *dryRun) decide() {
	t := d.parts.dryRuns
	defer t.queue.Leave()
	asked := !d.unknown && d.ask()
	if d.behind != nil && d.Passed() {
		d.behind.Charged(d.completion(context.Background(), d.isRPC))
	}
	switch { // last, because OnDecision may panic
	case !asked:
		d.reportUnasked()
	case !d.CountsNothing():
		d.reportDecision()
	}
	t.close(d)
}

// ask asks the store, and reports whether the cost fits.
func (d *dryRun) ask() (fits bool) {
	d.LookOnly(!d.passed)
	for i := range d.rules {
		d.Add(&d.rules[i].counted)
	}
	return d.consult(context.Background(), d.passed)
}

// reportUnasked reports that the rule would have refused the call whatever its counters hold.
func (d *dryRun) reportUnasked() {
	a := &d.rules[0]
	a.named.tally.Count(string(DryRunExceeded), string(FromNobody), d.traits, &d.place)
	d.report(a.named.tally, &Decision{Allowed: true, Reason: DryRunExceeded, Rule: a.named.name, Limit: a.rule.limits[0], Source: FromNobody})
}

// reportDecision reports what the limits decided.
func (d *dryRun) reportDecision() {
	d.Notice(-1)
	at := d.Binding()
	if at < 0 {
		return
	}
	of := d.ruleOf(at).named.tally
	if d.ctx == nil {
		d.report(of, nil)
		return
	}
	var decision Decision
	d.fillDecision(&decision, at, "")
	decision.try()
	for i := range decision.All {
		decision.All[i].try()
	}
	d.report(of, &decision)
}

// try makes the decision of a rule in force that of one in DryRun.
func (d *Decision) try() {
	d.Reason, d.Allowed, d.RetryAfter = ifTried(d.Reason), true, 0
}

// ifTried returns the reason of a rule in DryRun for what has the given one in force.
func ifTried(reason Reason) Reason {
	if reason == Allowed || reason == StoreFailOpen {
		return reason
	}
	return DryRunExceeded
}

// report passes a decision to OnDecision, if that is set, and counts how long it took.
func (d *dryRun) report(of *tally.Tally, decision *Decision) {
	delay := time.Duration(0)
	if !d.answered.IsZero() {
		delay = time.Since(d.answered)
	}
	of.DryRuns().Decide(d.ID(), delay)
	if d.ctx != nil {
		d.event.Decision, d.event.DryRun, d.event.Delay = *decision, true, delay
		d.parts.options.OnDecision(d.ctx, d.event)
	}
}
