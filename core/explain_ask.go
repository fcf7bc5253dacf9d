package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// askedLimit is a limit in force, and what the store is asked about it.
type askedLimit struct {
	sourcedLimit
	own bool // it is the rule's own, or replaces that
	*question
}

// ask asks the store about all rules: first for overrides and bans, which say what limits are in
// force, then for the counters.
func (x *explanation) ask(ctx context.Context) error {
	x.Time = time.Now().UTC()
	if err := ctx.Err(); err != nil {
		for _, e := range x.rules {
			if e.asked {
				e.asked, e.failed = false, err
			}
		}
		return err
	}
	deadline, cancel := context.WithTimeout(ctx, x.front.Timeout)
	defer cancel()
	x.readStored(deadline)
	all := make(questions)
	x.findLimits(all)
	x.front.askAll(deadline, all.inOrder())
	if !x.findTime() {
		x.readTime(deadline)
	}
	return x.failure(ctx)
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
		if e.isBlocked() {
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
	f := x.front
	var values map[string]redisstore.Value
	if f.Memory == nil {
		values = f.readAll(ctx, x.rules)
	}
	for _, e := range x.rules {
		if !e.asked {
			continue
		}
		if key := e.key(f, e.named.overrideKey); e.rule.Overrides && f.Memory != nil {
			o, ok := f.Memory.Override([]byte(key))
			e.takeOverride(redisstore.Value{Text: overrides.Stored(&o.Override, ok), Ok: ok})
		} else if e.rule.Overrides {
			e.takeOverride(values[key])
			e.takeKnownBlock(f, key)
		}
		if e.rule.ban != nil {
			e.ban = values[e.key(f, e.named.banKey)].Text
		}
	}
}

// readAll returns what Redis holds about the overrides and bans of rules, by their keys.
func (f *front) readAll(ctx context.Context, rules []*explained) map[string]redisstore.Value {
	values := make(map[string]redisstore.Value)
	var keys []string
	want := func(key string) {
		if _, ok := values[key]; !ok {
			keys, values[key] = append(keys, key), redisstore.Value{}
		}
	}
	for _, e := range rules {
		if e.asked && e.rule.Overrides {
			want(e.key(f, e.named.overrideKey))
		}
		if e.asked && e.rule.ban != nil {
			want(e.key(f, e.named.banKey))
		}
	}
	for i, value := range f.Redis.GetAll(ctx, keys) {
		values[keys[i]] = value
	}
	return values
}

// takeOverride uses what the store has for the override of the rule's subject.
func (e *explained) takeOverride(v redisstore.Value) {
	own := e.named.limits[0].counted.Compiled
	switch {
	case v.Ok || failure.ClassOf(v.Err) == failure.Foreign && v.Err != nil:
		o := readOverride(e.Subject, v.Text, own)
		e.stored = &o
	case v.Err != nil:
		e.failed = v.Err
	}
}

// takeKnownBlock uses a block that this process knows if the store does not answer.
func (e *explained) takeKnownBlock(f *front, key string) {
	if e.failed == nil {
		return
	}
	if lasts := f.operations.known.Lasts([]byte(key)); lasts > 0 {
		e.failed, e.stored = nil, &Override{Subject: e.Subject, Blocked: true}
		if lasts != algorithm.Forever {
			e.stored.Until = time.UnixMicro(f.operations.known.StoreTime() + lasts).UTC()
		}
	}
}

// findLimits finds the limits in force, and adds the questions about them.
func (x *explanation) findLimits(all questions) {
	for _, e := range x.rules {
		if !e.asked {
			continue
		}
		e.findLimits()
		e.lowerCost()
		if e.rule.ban != nil {
			e.banned = all.add(questionKey{key: e.key(x.front, e.named.banKey)}, e.rule.ban)
		}
		if e.failed != nil { // it is not known which limits are in force
			continue
		}
		for i := range e.limits {
			if a := &e.limits[i]; a.ruleLimit != nil && a.counted.Compiled != nil {
				key := questionKey{e.key(x.front, a.counted.KeyTail), a.limit, min(e.costOf(a), a.counted.Compiled.Max)}
				a.question = all.add(key, a.counted.Compiled)
			}
		}
	}
}

// findLimits finds the limits in force, by the rule, the plan and the override.
func (e *explained) findLimits() {
	owns, also := e.owns, e.also
	if o := e.stored; o != nil && o.Ignored == "" && !o.Blocked {
		source := fromOverride
		if !o.Until.IsZero() {
			source += " until " + o.Until.Format(time.RFC3339Nano)
		}
		owns = []sourcedLimit{{e.overridden(), source}}
	}
	if len(owns) == 1 && owns[0].ruleLimit == nil { // Unlimited lifts all limits of the rule
		also = nil
	}
	for _, own := range owns {
		e.limits = append(e.limits, askedLimit{sourcedLimit: own, own: true})
	}
	for _, further := range also {
		e.limits = append(e.limits, askedLimit{sourcedLimit: further})
	}
}

// overridden returns the limit that the override makes of the rule's own, or nil for Unlimited.
func (e *explained) overridden() *ruleLimit {
	if e.stored.Unlimited {
		return nil
	}
	own := e.named.limits[0]
	prepared := prepare(own.limit.overridden(&algorithm.FoundOverride{Max: int64(e.stored.Max), Burst: int64(e.stored.Burst)}))
	return &ruleLimit{limit: prepared.limit, counted: engine.Limit{Compiled: &prepared.compiled, Max: int64(prepared.limit.Max), KeyTail: own.counted.KeyTail}}
}

// lowerCost gives a call whose size is not known the largest cost that fits.
func (e *explained) lowerCost() {
	if e.cost != algorithm.LargestCost {
		return
	}
	e.cost = algorithm.MaxPermits
	for _, a := range e.limits {
		if a.ruleLimit != nil && !a.counted.Compiled.Properties().Slots {
			e.cost = min(e.cost, a.counted.Compiled.Max)
		}
	}
}

// costOf returns what the call costs by a limit.
func (e *explained) costOf(a *askedLimit) int64 {
	if a.counted.Compiled.Properties().Slots {
		return min(e.cost, 1)
	}
	return e.cost
}

// failure returns the error of the Explanation: why the store did not answer for one of the rules.
// A key that does not hold a counter is only an error of its rule.
func (x *explanation) failure(ctx context.Context) error {
	var failed error
	for _, e := range x.rules {
		for _, q := range append(e.questions(), e.banned) {
			if q == nil || q.answer() != nil || e.failed != nil {
				continue
			}
			if e.failed = q.verdict.Err; e.failed == nil {
				e.failed = failure.NoAnswer(failure.Timeout, x.front.Timeout, q.verdict.Ended)
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
