package core

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/notices"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Threshold reports that a subject has used a fraction of a limit: see [Rule].Warn.
// Options.OnThreshold receives it. Its strings are copies and may be kept. Fields may be added
// later.
type Threshold struct {
	// Rule is the name of the rule, and Key the subject, such as user:alice.
	Rule, Key string
	// Limit is the limit in force: the rule's own, one of Also, that of a plan, or an override.
	Limit Limit
	// Fraction is the entry of Warn that was reached.
	Fraction float64
	// Used is how much of the limit was in use after the call that reached it. For a TokenBucket it
	// counts against Burst, as the headers do.
	Used int
	// ResetAfter is the time from then until all permits are back, if nobody uses more.
	ResetAfter time.Duration
	// Time is when the call was charged, by the clock that counts.
	Time time.Time
}

// maxWarn is the largest number of fractions in Rule.Warn.
const maxWarn = 4

// checkWarn returns what is wrong with Warn, or nil.
func (r *Rule) checkWarn() *RuleError {
	switch {
	case len(r.Warn) == 0:
		return nil
	case len(r.Warn) > maxWarn:
		return r.wrong("Warn", r.Warn, "must be at most 4 fractions")
	case r.Lease != 0:
		return r.wrong("Lease", r.Lease, "cannot be combined with Warn: calls with leased permits do not ask Redis, so they would pass a threshold unseen")
	}
	for i, fraction := range r.Warn {
		switch {
		case !(0 < fraction && fraction <= 1): // also NaN
			return r.wrong("Warn", r.Warn, "must be fractions above 0 and up to 1, such as 0.8 for 80 %")
		case i > 0 && fraction <= r.Warn[i-1]:
			return r.wrong("Warn", r.Warn, "must be in ascending order")
		}
	}
	return nil
}

// newThresholds returns the queue for the notices of thresholds, or nil if nobody receives reports.
func (l *Limiter) newThresholds() *notices.Queue {
	switch {
	case l.options.OnThreshold == nil:
		return nil
	case l.memory != nil:
		return notices.NewQueue(notices.Memory{Store: l.memory}, l.operatorLog)
	default:
		return notices.NewQueue(notices.Redis{Store: l.redis}, l.operatorLog)
	}
}

// warn reports the thresholds that the charges of a call have reached. It is called for calls that
// passed.
func (c *call) warn() {
	for i := range c.limits {
		if a := &c.limits[i]; len(a.rule.Warn) > 0 || a.warn != nil {
			c.warnOf(a, &c.counters[i], &c.verdicts[i])
		}
	}
}

// warnings returns the fractions of the limit that are reported.
func (a *callLimit) warnings() []float64 {
	if a.warn != nil {
		return a.warn
	}
	return a.rule.Warn
}

// warnOf reports the thresholds of one limit. Only a charge by the store counts: a local count has
// only a share of the limit.
func (c *call) warnOf(a *callLimit, counter *algorithm.Counter, v *algorithm.Verdict) {
	if v.From != algorithm.FromStore {
		return
	}
	used := counter.Limit.Max - v.Remaining
	for _, fraction := range a.warnings() {
		reached := counter.Limit.Reaches(fraction)
		if used < reached {
			return
		}
		if used-v.Taken < reached {
			c.reached(a, counter, v, fraction)
		}
	}
}

// reached leaves a notice of a threshold, unless that was done just before.
func (c *call) reached(a *callLimit, counter *algorithm.Counter, v *algorithm.Verdict, fraction float64) {
	l, subject := c.limiter, c.subjects[a.from:a.to]
	var room [rediskey.MaxLen]byte
	key := rediskey.Append(room[:0], l.keyHead, subject, rediskey.NoticeTail(a.named.name, a.rule.DryRun, counter.Limit, fraction))
	limit := fmt.Sprint(a.limit.Max, "/", counter.Limit.Max) // the second differs for a bucket
	if l.thresholds.Knows(key, limit, v.At) {
		return
	}
	reached := Threshold{
		Rule: a.named.name, Key: string(subject), Limit: *a.limit, Fraction: fraction, Used: permitsOf(counter.Limit.Max - v.Remaining),
		ResetAfter: micros(v.ResetAfter), Time: time.UnixMicro(v.At),
	}
	l.thresholds.Add(notices.Notice{
		Key: string(key), Limit: limit, At: v.At, Ends: v.At + counter.Limit.NoticeLife(v), Size: len(key) + len(subject),
		Report: func(ctx context.Context) { l.reportThreshold(ctx, reached) },
	})
}

// reportThreshold passes a report to OnThreshold. If that panics, only this report is lost.
func (l *Limiter) reportThreshold(ctx context.Context, t Threshold) {
	defer func() {
		if p := recover(); p != nil {
			l.operatorLog.OnThresholdPanicked(t.Rule, fmt.Sprint(p), debug.Stack())
		}
	}()
	l.options.OnThreshold(ctx, t)
}

// appendNotices appends the keys of the notices of the rule's thresholds for a subject.
func (b *boundRule) appendNotices(keys [][]byte, named *namedRule, keyHead, subject string) [][]byte {
	for _, fraction := range b.Warn {
		for _, limit := range named.countedLimits() {
			keys = append(keys, rediskey.Append(nil, keyHead, subject, rediskey.NoticeTail(named.name, b.DryRun, limit.compiled, fraction)))
		}
	}
	return keys
}
