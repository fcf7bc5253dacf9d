package core

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Internals that the tests of this package reach and users cannot.

// CounterKey is the Redis key of a counter.
func CounterKey(prefix, subject, name string, limit Limit) string {
	compiled, err := limit.compile()
	if err != nil {
		panic(err)
	}
	return string(rediskey.AppendLimit(nil, rediskey.Head(prefix), subject, name, false, &compiled))
}

// AwaitReports returns when the thresholds that calls have reached so far are reported.
func AwaitReports(l *Limiter) { l.front().thresholds.Await(context.Background()) }

// HoldDryRuns makes the store wait with its answers about rules in DryRun until release is called.
func HoldDryRuns(l *Limiter) (release func()) {
	f := l.front()
	store := holding{f.Store, make(chan struct{})}
	useStore(f, store, nil)
	return func() { close(store.released) }
}

type holding struct {
	limiter.Store
	released chan struct{}
}

func (h holding) Do(ctx context.Context, op *algorithm.Op) {
	if bytes.Contains(op.Counters[0].Key, []byte("%dry")) {
		<-h.released
	}
	h.Store.Do(ctx, op)
}

// AwaitAudit returns when the versions of a set so far are in the audit.
func AwaitAudit(s *RuleSet) { <-s.inside().audits }

// UseClock makes a limiter count in this process by another clock, in microseconds since the epoch.
func UseClock(l *Limiter, now func() int64) { l.front().Memory.UseClock(now) }

// AskRedis makes a limiter ask Redis for every call, for tests of what Redis counts, or tests in
// which only Redis's clock advances.
func AskRedis(l *Limiter) {
	f := l.front()
	useStore(f, f.Local.Shared, nil)
	f.Local = nil
}

// useStore gives a limiter another store.
func useStore(f *front, s limiter.Store, refusals engine.Refusals) {
	f.Ask(s, refusals)
	f.inFlight = f.InFlight
}

// GiveBackAtOnce makes a limiter give back the charges of a call that another server refused before
// the call returns.
func GiveBackAtOnce(l *Limiter) {
	local := l.front().Local
	local.Shared.GiveBackBy(func(charges []algorithm.Charge) {
		if err := local.Change(context.Background(), &algorithm.Change{Charges: charges}); err != nil {
			panic(err)
		}
	})
}

// AnswerLate makes a reservation wait for its answer until answer is called. granted is closed when
// the store has decided.
func AnswerLate(l *Limiter) (granted <-chan struct{}, answer func()) {
	f := l.front()
	store := late{f.Store, make(chan struct{}), make(chan struct{})}
	useStore(f, store, f.Local)
	return store.granted, func() { close(store.answer) }
}

type late struct {
	limiter.Store
	granted, answer chan struct{}
}

func (l late) Do(ctx context.Context, op *algorithm.Op) {
	l.Store.Do(ctx, op)
	if op.Mode == algorithm.InTurn {
		close(l.granted)
		<-l.answer
	}
}

// UseAnswers makes a limiter answer with the test's verdicts: one for each counter of a call, in
// order.
func UseAnswers(l *Limiter, verdicts ...algorithm.Verdict) {
	f := l.front()
	useStore(f, answers{f.Store, verdicts}, nil)
	f.Local, f.Memory = nil, nil
}

type answers struct {
	limiter.Store
	verdicts []algorithm.Verdict
}

func (a answers) Do(_ context.Context, op *algorithm.Op) {
	copy(op.Verdicts, a.verdicts)
}

// Kept returns what is kept outside a limiter: the objects that its next calls work with.
func Kept(l *Limiter) []any {
	f := l.front()
	return []any{f.calls.Get(), f.directs.Get(), f.dryRuns.pool.Get()}
}

// KnownLimits returns how many prepared limits a limiter remembers.
func KnownLimits(l *Limiter) int { return len(l.front().registry.limits.known.All()) }

// RefusingReasons returns the reasons to refuse a call.
func RefusingReasons() []Reason { return slices.Collect(maps.Keys(replies)) }

// ReferenceOf returns the reference of a refusal by a decision.
func ReferenceOf(l *Limiter, d Decision) string { return referenceOf(l.front().references, &d, 0) }

// ReadMarks reads what other processes have marked, as a process does in the background.
func ReadMarks(l *Limiter) error { return l.front().Marks.Refresh(context.Background()) }
