package core

import (
	"bytes"
	"context"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Reset forgets what a subject used of all limits of the guard's rules, including those of Also and
// Plans, as if it had never called. It reports whether there was anything to forget. For a rule
// without a Name it resets the routes that this process has been called for. It neither ends a ban
// (see package operate) nor resets limits from LimitFor. Errors are those of [Counter.Reset].
func (g *Guard) Reset(ctx context.Context, subject string) (changed bool, err error) {
	if !g.made() {
		return false, errZeroGuard
	}
	rules := g.bound()
	name := rules[0].displayName()
	if err := checkSubject(name, subject); err != nil {
		return false, err
	}
	var forget forgotten
	for _, rule := range rules {
		for _, named := range rule.namedRules() {
			forget.add(g.front.KeyHead, rule, named, subject)
		}
	}
	return g.front.reset(ctx, name, subject, forget)
}

// Reset does what [Guard.Reset] does for the check's rules.
func (c *Check) Reset(ctx context.Context, subject string) (changed bool, err error) {
	return c.madeGuard().Reset(ctx, subject)
}

// ResetRules implements limiter.Front.
func (f *front) ResetRules(ctx context.Context, name, subject string) (changed, known bool, err error) {
	forget, known := f.registry.forget(f.KeyHead, name, subject)
	if !known {
		return false, false, nil
	}
	changed, err = f.reset(ctx, name, subject, forget)
	return changed, true, err
}

// forget returns the keys that Reset deletes for the attached rules of a name. ok is false if there
// are no such rules.
func (g *registry) forget(keyHead, name, subject string) (forget forgotten, ok bool) {
	guards, _ := g.attached.All()
	for _, a := range guards {
		for _, rule := range a.bound() {
			for _, named := range rule.namedRules() {
				if named.name == name {
					forget.add(keyHead, rule, named, subject)
					ok = true
				}
			}
		}
	}
	return forget, ok
}

// forgotten are the keys of counters, and of reports of their thresholds, that a reset forgets.
type forgotten struct{ counters, notices [][]byte }

// add adds those of a rule under one of its names.
func (f *forgotten) add(keyHead string, rule *boundRule, named *namedRule, subject string) {
	limits := named.countedLimits()
	if instead := named.insteadOf(subject); instead != nil {
		limits = append(limits, instead.limits...)
	}
	for _, limit := range limits {
		f.counters = append(f.counters, rediskey.Append(nil, keyHead, subject, limit.counted.KeyTail))
		for _, fraction := range rule.Warn {
			f.notices = append(f.notices, rediskey.Append(nil, keyHead, subject, rediskey.NoticeTail(named.name, rule.Mode == DryRun, limit.counted.Compiled, fraction)))
		}
	}
}

// reset forgets these keys of a subject.
func (f *front) reset(ctx context.Context, name, subject string, forget forgotten) (changed bool, err error) {
	if len(forget.notices) > 0 {
		defer f.thresholds.Forget(forget.notices...)
	}
	keys := append(forget.counters, forget.notices...)
	slices.SortFunc(keys, bytes.Compare) // rules that many routes share have the same keys
	keys = slices.CompactFunc(keys, bytes.Equal)
	return f.Reset(ctx, audit.Act{What: audit.Reset, Rule: name, Subject: subject}, f.failures.errorOf, keys...)
}

// reset forgets the subject's use of all limits of the handle.
func (q *handleCall) reset(ctx context.Context) (changed bool, err error) {
	if q.handle == nil {
		return false, errZeroHandle
	}
	if err := checkSubject(q.named.name, q.subject); err != nil {
		return false, err
	}
	if err := q.check(ctx); err != nil {
		return false, err
	}
	var keys [][]byte
	for i := range q.limits {
		if !q.countedAt(i).limit.unlimited() {
			keys = append(keys, q.key(i))
		}
	}
	if instead := q.named.insteadOf(q.subject); instead != nil {
		for _, limit := range instead.counted {
			keys = append(keys, q.keyOf(limit.Compiled))
		}
		slices.SortFunc(keys, bytes.Compare)
		keys = slices.CompactFunc(keys, bytes.Equal)
	}
	return q.front.Reset(ctx, audit.Act{What: audit.Reset, Rule: q.named.name, Subject: q.subject}, q.front.failures.errorOf, keys...)
}
