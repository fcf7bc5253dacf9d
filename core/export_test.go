package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Internals that the tests of this package reach and users cannot.

// MaxRoutes is the number of routes that an unnamed rule counts separately.
const MaxRoutes = maxRoutes

// CounterKey is the Redis key of a counter.
func CounterKey(prefix, subject, name string, limit Limit) string {
	compiled, err := limit.compile()
	if err != nil {
		panic(err)
	}
	return string(rediskey.AppendLimit(nil, rediskey.Head(prefix), subject, name, false, &compiled))
}

// UseClock makes a limiter count in this process by another clock, in microseconds since the epoch.
func UseClock(l *Limiter, now func() int64) {
	l.memory = memstore.New(l.options.MaxKeys, now)
	l.store = l.memory
}

// AskRedis makes a limiter ask Redis for every call, for tests of what Redis counts, or tests in
// which only Redis's clock advances.
func AskRedis(l *Limiter) { l.store, l.local = l.local.Shared, nil }

// UseAnswers makes a limiter answer with the test's verdicts: one for each counter of a call, in
// order.
func UseAnswers(l *Limiter, verdicts ...algorithm.Verdict) {
	l.store, l.local, l.memory = answers{l.store, verdicts}, nil, nil
}

type answers struct {
	store
	verdicts []algorithm.Verdict
}

func (a answers) Decide(_ context.Context, _ []algorithm.Counter, _ bool, verdicts []algorithm.Verdict) {
	copy(verdicts, a.verdicts)
}

// MaxRefunds is the least number of refunds that are remembered.
const MaxRefunds = maxRefunds

// BreakRenewals makes the next so many renewals of a limiter's slots fail.
func BreakRenewals(l *Limiter, times int) { l.store = &brokenRenewals{l.store, times} }

type brokenRenewals struct {
	store
	times int
}

func (b *brokenRenewals) Renew(ctx context.Context, slots []algorithm.Charge) error {
	if b.times--; b.times >= 0 {
		return errors.New("out of order")
	}
	return b.store.Renew(ctx, slots)
}

// LateSlots returns how many slots wait to be given back in the background.
func LateSlots(l *Limiter) int { return l.slotRetries.Len() }

// Kept returns what is kept outside a limiter: the calendars, which all limiters share, and the
// objects that its next calls work with.
func Kept(l *Limiter) []any { return []any{&calendars, l.calls.Get(), l.directs.Get()} }

// Refunds is the limiter's memory of how much of one charge was given back.
type Refunds struct {
	refunds refunds
	charge  receipt
}

// NewRefunds returns the Refunds of a charge with this cost.
func NewRefunds(cost int64) *Refunds { return &Refunds{charge: receipt{cost: cost, id: 1}} }

// Take gives back n, as Refund does, and reports whether it could.
func (r *Refunds) Take(n int64) bool { return r.refunds.take([]receipt{r.charge}, n) == "" }

// TakeRest gives back what is left, as a call that does not count does, and returns how much that
// was.
func (r *Refunds) TakeRest() int64 { return r.refunds.takeRest(&r.charge) }

// TakeLate makes the next decision of a limiter get no answer in time. The charge arrives late,
// after something was given back. The channel is closed when that is done.
func TakeLate(l *Limiter) (taken <-chan struct{}) {
	s := &lateStore{store: l.store, taken: make(chan struct{})}
	l.store = s
	return s.taken
}

type lateStore struct {
	store
	mu      sync.Mutex
	decided bool
	onWay   []algorithm.Counter
	taken   chan struct{}
}

func (s *lateStore) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided {
		s.store.Decide(ctx, counters, charge, verdicts)
		return
	}
	s.decided = true
	for i, c := range counters {
		c.Key = slices.Clone(c.Key)
		s.onWay = append(s.onWay, c)
		verdicts[i] = algorithm.Verdict{Err: failure.NoAnswer(failure.Timeout, time.Second, nil)}
	}
}

func (s *lateStore) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.store.GiveBack(ctx, charges)
	if s.onWay != nil {
		s.store.Decide(ctx, s.onWay, true, make([]algorithm.Verdict, len(s.onWay)))
		s.onWay = nil
		close(s.taken)
	}
	return err
}
