package core

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Log counts by [SlidingLog], keeps a note with each call that it admits, and lists these calls.
// Make one with [Limiter.Log]. It is a small value, safe for concurrent use. Errors are those of
// [Counter].
type Log struct {
	handle *handle
}

// Log returns a [Log] for a name and a limit by [SlidingLog], such as PerHour(3).Log(). The error
// is a *[RuleError].
func (l *Limiter) Log(name string, limit Limit) (Log, error) {
	h, err := l.front().newHandle(name, &logKind, limit)
	return Log{h}, err
}

// MustLog is like Log but panics if the limit is wrong.
func (l *Limiter) MustLog(name string, limit Limit) Log { return orPanic(l.Log(name, limit)) }

var logKind = handleKind{accepts: onlyLogs, one: true}

func onlyLogs(limit *Limit) string {
	if !limit.Algorithm.properties().Notes {
		return "keeps no records: use SlidingLog, as in PerHour(3).Log()"
	}
	return ""
}

// WithStorePolicy returns the log with a policy for when Redis does not answer. See
// [Counter.WithStorePolicy]. Records are always read from Redis.
func (l Log) WithStorePolicy(policy StorePolicy) Log { return Log{l.handle.withPolicy(policy)} }

// Allow charges one permit, if there is one, and keeps the note: at most 256 bytes of it, as valid
// UTF-8. Danger: the note stands in Redis in plain text, so it is no place for secrets.
func (l Log) Allow(ctx context.Context, subject, note string) (Decision, error) {
	return l.AllowN(ctx, subject, 1, note)
}

// AllowN is like Allow for n permits, all or none.
func (l Log) AllowN(ctx context.Context, subject string, n int, note string) (d Decision, err error) {
	q := handleCall{handle: l.handle, subject: subject, n: n, charging: chargeAll, note: algorithm.CutNote(note)}
	err = q.ask(ctx, &d)
	return d, err
}

// Records returns the calls of a subject that still count, newest first.
func (l Log) Records(ctx context.Context, subject string) ([]Record, error) {
	q := handleCall{handle: l.handle, subject: subject}
	if err := q.check(ctx); err != nil {
		return nil, err
	}
	if q.unlimited() {
		return nil, nil
	}
	limit := &q.limit(0).compiled
	if instead := q.named.insteadOf(subject); instead != nil {
		limit = instead.counted[0].Compiled
	}
	kept, err := q.front.Store.Records(ctx, q.keyOf(limit), limit)
	if err != nil {
		return nil, q.front.failures.errorOf(q.named.name, err)
	}
	records := make([]Record, len(kept))
	for i, r := range kept {
		records[i] = Record{Time: time.UnixMicro(r.At), Cost: int(r.Cost), Note: r.Note}
	}
	return records, nil
}

// Reset forgets the calls of a subject. See [Counter.Reset].
func (l Log) Reset(ctx context.Context, subject string) (changed bool, err error) {
	q := handleCall{handle: l.handle, subject: subject}
	return q.reset(ctx)
}

// Record is a call that a [SlidingLog] admitted and that still counts.
type Record struct {
	// Time is the time of the call by the store's clock, to the microsecond.
	Time time.Time
	// Cost is the number of permits that it took.
	Cost int
	// Note is the note that was kept with it. See [Rule].Note and [Log.Allow].
	Note string
}
