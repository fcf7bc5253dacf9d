package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// ask asks the store about all rules: first for overrides and bans, which say what limits are in
// force, then for the counters of these limits, and for those that the engine wants to know.
func (x *explanation) ask(ctx context.Context) error {
	x.Time = time.Now().UTC()
	if err := ctx.Err(); err != nil {
		for _, e := range x.rules {
			if e.asked {
				e.asked, e.undecided, e.failed = false, true, err
			}
		}
		return err
	}
	deadline, cancel := context.WithTimeout(ctx, x.front.Timeout)
	defer cancel()
	x.readStored(deadline)
	x.answers.asked = make(questions)
	x.findLimits()
	x.decide()
	x.front.askAll(deadline, x.answers.asked.inOrder())
	if !x.findTime() {
		x.readTime(deadline)
	}
	return x.failure(ctx)
}

// findTime takes the time of the latest answer, and reports whether there is one.
func (x *explanation) findTime() bool {
	latest := int64(0)
	for _, q := range x.answers.asked {
		if q.answer() != nil {
			latest = max(latest, q.verdict.At)
		}
	}
	if latest > 0 {
		x.Time = time.UnixMicro(latest).UTC()
	}
	return latest > 0
}

// readTime reads the clock that counts, because only blocks may decide, and their ends are times of
// that clock.
func (x *explanation) readTime(ctx context.Context) {
	f := x.front
	if f.Memory != nil {
		x.Time = time.UnixMicro(f.Memory.Now()).UTC()
		return
	}
	for _, e := range x.rules {
		if found := e.stored.found(); found.What == algorithm.OverrideBlocked {
			if now, err := f.Redis.Now(ctx, e.key(f, e.named.overrideKey)); err == nil {
				x.Time = time.UnixMicro(now).UTC()
			}
			return
		}
	}
}

// key returns a key of the rule's subject.
func (e *explained) key(f *front, tail string) string {
	return string(rediskey.Append(nil, f.KeyHead, e.Subject, tail))
}

// readStored reads the overrides and bans.
func (x *explanation) readStored(ctx context.Context) {
	var keys []string
	for _, e := range x.rules {
		if e.asked && e.rule.Overrides {
			keys = append(keys, e.key(x.front, e.named.overrideKey))
		}
		if e.asked && e.rule.ban != nil {
			keys = append(keys, e.key(x.front, e.named.banKey))
		}
	}
	x.answers.read(ctx, keys)
	for _, e := range x.rules {
		if e.asked && e.rule.Overrides {
			e.stored, e.failed = x.answers.override(e.Subject, e.key(x.front, e.named.overrideKey), e.named.limits[0].counted.Compiled)
		}
	}
}

// findLimits finds the limits in force, and adds the questions about them.
func (x *explanation) findLimits() {
	f, all := x.front, x.answers.asked
	for _, e := range x.rules {
		if !e.asked {
			continue
		}
		e.findLimits(f)
		if e.rule.ban != nil {
			e.banned = all.add(e.key(f, e.named.banKey), e.rule.ban, 0)
		}
		if e.failed != nil { // it is not known which limits are in force
			continue
		}
		costly := e.costly()
		for i := range e.limits {
			switch a := &e.limits[i]; {
			case a.ruleLimit == nil || a.isAny():
			case costly: // it is not charged
				a.question = all.add(e.key(f, a.counted.KeyTail), a.counted.Compiled, 0)
			default:
				a.question = all.add(e.key(f, a.counted.KeyTail), a.counted.Compiled, a.counted.CostOf(e.cost))
			}
		}
	}
}

// findLimits finds the limits in force, by the rule, the plan and the override, and what a call of
// unknown size costs by them.
func (e *explained) findLimits(f *front) {
	owns, also := e.owns, e.also
	if found := e.stored.found(); found.What == algorithm.OverrideLimit || found.What == algorithm.OverrideUnlimited {
		own := sourcedLimit{source: fromOverride}
		if until := e.stored.Until; !until.IsZero() {
			own.source += " until " + until.Format(time.RFC3339Nano)
		}
		if found.What == algorithm.OverrideLimit {
			own.ruleLimit = e.named.overridden(f.limits, &found)
		}
		owns = []sourcedLimit{own}
	}
	if len(owns) == 1 && owns[0].ruleLimit == nil { // Unlimited lifts all limits of the rule
		also = nil
	}
	for _, own := range owns {
		e.limits = append(e.limits, askedLimit{sourcedLimit: own})
	}
	for _, further := range also {
		e.limits = append(e.limits, askedLimit{sourcedLimit: further})
	}
	if e.cost == algorithm.LargestCost {
		e.cost = e.largestCost()
	}
}

// largestCost returns the largest cost that fits into the limits in force.
func (e *explained) largestCost() int64 {
	if own := e.limits[0]; own.ruleLimit != nil {
		return e.named.counted.LargestCost(&own.counted)
	}
	return algorithm.MaxPermits
}

// costly reports whether the call never fits into one of the limits in force.
func (e *explained) costly() bool { return e.cost > e.largestCost() }

// failure returns the error of the Explanation: why the store did not answer for one of the rules.
// A key that does not hold a counter is only an error of its rule.
func (x *explanation) failure(ctx context.Context) error {
	var failed error
	for _, e := range x.rules {
		for _, q := range append(e.questions(), e.banned) {
			if q != nil && e.failed == nil {
				e.failed = q.verdict.Err
			}
		}
		switch {
		case e.failed == nil:
		case failure.ClassOf(e.failed) == failure.Foreign:
			e.Errors = append(e.Errors, "Redis: "+e.failed.Error())
		case failed == nil:
			failed = e.failed
		}
	}
	if failed == nil {
		return nil
	}
	if ended := failure.CallersEnd(ctx); ended != nil {
		return ended
	}
	return &StoreError{StoreErrorClass(failure.ClassOf(failed)), failed}
}

// questions returns what is asked about the limits.
func (e *explained) questions() (list []*question) {
	for i := range e.limits {
		list = append(list, e.limits[i].question)
	}
	return list
}

// concludeRule fills in the limits, the override and the ban of a rule.
func (x *explanation) concludeRule(e *explained) {
	for i := range e.limits {
		e.Limits = append(e.Limits, e.limits[i].explain())
	}
	e.Cost, e.Override = permitsOf(e.cost), e.stored
	v := e.banned.answer()
	if v == nil {
		return
	}
	ban := x.answers.ban(string(e.banned.counter.Key), v.At)
	e.Bans, e.Strikes = int(ban.Bans), int(ban.Strikes(e.rule.ban, v.At))
	if v.RetryAfter > 0 {
		e.BannedUntil = time.UnixMicro(v.At + v.RetryAfter).UTC()
	}
}

// explain returns a limit with the store's answer.
func (a *askedLimit) explain() ExplainedLimit {
	out := ExplainedLimit{Source: a.source}
	if a.ruleLimit == nil {
		out.Limit = Unlimited
		return out
	}
	out.Limit = a.limit
	if v := a.answer(); v != nil {
		out.Known, out.Remaining = true, permitsOf(v.Remaining)
		out.ResetAfter, out.RetryAfter = micros(v.ResetAfter), micros(v.RetryAfter)
		out.Used = max(0, a.limit.atOnce()-out.Remaining)
	}
	return out
}
