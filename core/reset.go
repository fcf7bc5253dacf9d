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
// (see [Limiter.Unban]) nor resets limits from LimitFor. Errors are those of [Counter.Reset].
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
	return g.front.operations.resetRules(ctx, name, subject, forget)
}

// Reset forgets what a subject has used of the attached rules of a name, as [Guard.Reset] does for
// the rules of a Guard. It covers a rule's own limit, Also and Plans. It neither resets limits from
// LimitFor nor ends a ban (see [Limiter.Unban]). It reports whether there was anything to forget.
//
// The error is a *[RuleError] if no attached rule counts by this name. The counters of handles have
// a Reset of their own. Other errors are those of [Limiter.Ban].
func (l *Limiter) Reset(ctx context.Context, name, subject string) (changed bool, err error) {
	if err := l.operator().check(name, subject); err != nil {
		return false, err
	}
	f := l.front()
	forget, ok := f.registry.attached.forget(f.KeyHead, name, subject)
	if !ok {
		return false, &RuleError{Rule: name, Field: "name", Value: name, Why: "must be the name of a rule that is attached to this Limiter"}
	}
	return f.operations.resetRules(ctx, name, subject, forget)
}

// forget returns the keys that Reset deletes for the attached rules of a name. ok is false if there
// are no such rules.
func (a *attachedGuards) forget(keyHead, name, subject string) (forget forgotten, ok bool) {
	guards, _ := a.all()
	for _, g := range guards {
		for _, rule := range g.bound() {
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
	for _, limit := range named.countedLimits() {
		f.counters = append(f.counters, rediskey.Append(nil, keyHead, subject, limit.counted.KeyTail))
	}
	f.notices = rule.appendNotices(f.notices, named, keyHead, subject)
}

// appendNotices appends the keys of the notices of the rule's thresholds for a subject.
func (b *boundRule) appendNotices(keys [][]byte, named *namedRule, keyHead, subject string) [][]byte {
	for _, fraction := range b.Warn {
		for _, limit := range named.countedLimits() {
			keys = append(keys, rediskey.Append(nil, keyHead, subject, rediskey.NoticeTail(named.name, b.Mode == DryRun, limit.counted.Compiled, fraction)))
		}
	}
	return keys
}

// resetRules forgets these keys of a subject.
func (o *operations) resetRules(ctx context.Context, name, subject string, f forgotten) (changed bool, err error) {
	if len(f.notices) > 0 {
		defer o.thresholds.Forget(f.notices...)
	}
	keys := append(f.counters, f.notices...)
	slices.SortFunc(keys, bytes.Compare) // rules that many routes share have the same keys
	return o.reset(ctx, audit.Reset, name, subject, slices.CompactFunc(keys, bytes.Equal)...)
}
