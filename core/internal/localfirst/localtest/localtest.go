// Package localtest has a shared store that tests can control, and processes that use it.
package localtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/localfirst"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// Patient is a timeout that is never reached, however busy the machine.
const Patient = time.Minute

// Spans, in microseconds.
const (
	Second = 1_000_000
	Minute = 60 * Second
	Hour   = 60 * Minute
)

// Shared stands for Redis: each store in front of it is a process of its own. Its hooks, unless
// nil, run before or after the operation in their name.
type Shared struct {
	*memstore.Store
	Asked                       atomic.Int64 // how often it was asked to decide
	BeforeDecide, AfterDecide   func()
	BeforeGiveBack, BeforeReset func()
	Down                        atomic.Bool  // it does not answer
	DownFor                     string       // it does not answer for this subject
	LeasedCalls                 atomic.Int64 // how many calls the last Lease asked for
	GiveBackSoon                func([]algorithm.Charge)
	background                  sync.WaitGroup
}

// NewShared returns a shared store of at most maxKeys keys.
func NewShared(t testing.TB, maxKeys int) *Shared {
	s := &Shared{Store: memstore.New(maxKeys, nil)}
	bounded.Cleanup(t, s.Store.Close)
	return s
}

var errDown = errors.New("the store is down")

// Do implements localfirst.Shared.
func (s *Shared) Do(ctx context.Context, op *algorithm.Op) {
	s.Asked.Add(1)
	s.do(ctx, op)
}

func (s *Shared) do(ctx context.Context, op *algorithm.Op) {
	cost := op.Counters[0].Cost
	call(s.BeforeDecide)
	if op.Mode == algorithm.AllOrNone {
		if op.Counters[0].Lease == 0 { // that of a fetch, which is leased no more
			s.LeasedCalls.Store(op.Calls)
		}
		s.decideCalls(ctx, op)
	} else {
		s.Store.Do(ctx, op)
	}
	call(s.AfterDecide)
	for i := range op.Verdicts {
		if s.Down.Load() || s.DownFor != "" && strings.Contains(string(op.Counters[i].Key), s.DownFor) {
			op.Verdicts[i], op.Passed = algorithm.Verdict{Err: errDown}, 0
			op.Counters[i].Cost = cost
		}
	}
}

// decideCalls decides several calls, as the store in Redis does.
func (s *Shared) decideCalls(ctx context.Context, op *algorithm.Op) {
	if op.Calls == 1 {
		s.Store.Do(ctx, op)
		op.Passed = 1
	} else {
		cost, v := op.Counters[0].Cost, s.look(op.Counters[0])
		op.Passed = max(1, min(op.Calls, v.Remaining/cost))
		op.Counters[0].Cost = op.Passed * cost
		s.Store.Do(ctx, op)
		op.Counters[0].Cost = cost
	}
	switch err := ctx.Err(); {
	case err != nil:
		op.Verdicts[0], op.Passed = algorithm.Verdict{Ended: err}, 0
	case op.Verdicts[0].RetryAfter != 0:
		op.Passed = 0
	}
}

func call(hook func()) {
	if hook != nil {
		hook()
	}
}

// look returns what the store says of a counter.
func (s *Shared) look(c algorithm.Counter) algorithm.Verdict {
	op := algorithm.NewOp(algorithm.Looks, c)
	s.Store.Do(context.Background(), op)
	return op.Verdicts[0]
}

// Change implements localfirst.Shared.
func (s *Shared) Change(ctx context.Context, c *algorithm.Change) error {
	if c.Kind == algorithm.GivesBack {
		call(s.BeforeGiveBack)
	}
	return s.Store.Change(ctx, c)
}

// Reset implements localfirst.Shared.
func (s *Shared) Reset(ctx context.Context, keys ...[]byte) (changed bool, err error) {
	call(s.BeforeReset)
	return s.Store.Reset(ctx, keys...)
}

// GiveBackBy keeps the function for the test. The store never calls it, because it has only one
// shard.
func (s *Shared) GiveBackBy(giveBack func([]algorithm.Charge)) { s.GiveBackSoon = giveBack }

// InBackground runs a function that Close waits for.
func (s *Shared) InBackground(do func()) { s.background.Go(do) }

// Panicked ends the test.
func (s *Shared) Panicked(err error) { panic(err) }

// Close waits for what runs in the background. The store stays open for the other processes.
func (s *Shared) Close() { s.background.Wait() }

// WantAsked checks how often the store was asked since the last check.
func (s *Shared) WantAsked(t testing.TB, want int64) {
	t.Helper()
	if got := s.Asked.Swap(0); got != want {
		t.Fatalf("the store was asked %d times, want %d", got, want)
	}
}

// Left returns how many permits of a counter are left.
func (s *Shared) Left(c algorithm.Counter) int64 { return s.look(c).Remaining }

// Shards is a shared store with a server for each subject. When one refuses a call, nobody is
// charged.
type Shards struct{ *Shared }

// Do implements localfirst.Shared.
func (s Shards) Do(ctx context.Context, op *algorithm.Op) {
	s.Asked.Add(1)
	s.each(ctx, op, algorithm.Looks)
	if op.Charges() && algorithm.Passes(op.Counters, op.Verdicts) {
		s.each(ctx, op, op.Mode)
	}
}

func (s Shards) each(ctx context.Context, op *algorithm.Op, m algorithm.Mode) {
	part := uint8(0)
	for from := 0; from < len(op.Counters); part++ {
		to := from + 1
		for to < len(op.Counters) && HashTag(op.Counters[to]) == HashTag(op.Counters[from]) {
			to++
		}
		s.do(ctx, &algorithm.Op{Mode: m, Counters: op.Counters[from:to], Verdicts: op.Verdicts[from:to], Calls: 1})
		for i := range op.Verdicts[from:to] {
			op.Verdicts[from+i].Part = part
		}
		from = to
	}
}

// HashTag returns the part of a counter's key that chooses its server: the subject.
func HashTag(c algorithm.Counter) string {
	_, rest, _ := strings.Cut(string(c.Key), "{")
	subject, _, _ := strings.Cut(rest, "}")
	return subject
}

// Process is a process that uses a shared store.
type Process struct{ *localfirst.Store }

// NewProcess returns a process that uses a shared store.
func NewProcess(t testing.TB, shared localfirst.Shared) Process {
	s := localfirst.New(shared, Patient, 1000)
	bounded.Cleanup(t, s.Close)
	return Process{s}
}

// Ask charges what the counters cost, if it fits.
func (p Process) Ask(counters ...algorithm.Counter) []algorithm.Verdict {
	return p.Do(context.Background(), algorithm.NewOp(algorithm.AllOrNone, counters...))
}

// Do carries out an op, and returns the verdicts.
func (p Process) Do(ctx context.Context, op *algorithm.Op) []algorithm.Verdict {
	p.Store.Do(ctx, op)
	return op.Verdicts
}

// MustTake charges what the counters cost, and fails the test if it does not fit.
func (p Process) MustTake(t testing.TB, counters ...algorithm.Counter) algorithm.Verdict {
	t.Helper()
	verdicts := p.Ask(counters...)
	for _, v := range verdicts {
		if v.RetryAfter != 0 || v.Err != nil || v.Ended != nil {
			t.Fatalf("%s: %+v, want it taken", counters[0].Key, v)
		}
	}
	return verdicts[0]
}

// MustRefuse asks for a cost that must not fit, and checks the origin of the refusal.
func (p Process) MustRefuse(t testing.TB, from algorithm.Origin, counters ...algorithm.Counter) algorithm.Verdict {
	t.Helper()
	verdicts := p.Ask(counters...)
	if v := verdicts[0]; v.RetryAfter <= 0 || v.From != from {
		t.Fatalf("%s: %+v, want it refused from %d", counters[0].Key, v, from)
	}
	return verdicts[0]
}

// MustReset resets the keys of counters.
func (p Process) MustReset(t testing.TB, counters ...algorithm.Counter) {
	t.Helper()
	for _, c := range counters {
		if _, err := p.Reset(context.Background(), c.Key); err != nil {
			t.Error(err)
		}
	}
}

// Windowed returns a limit of a windowed algorithm.
func Windowed(kind algorithm.Kind, most, window int64) *algorithm.Limit {
	return new(algorithm.Windowed(kind, most, window))
}

// Bucket returns the limit of a token bucket.
func Bucket(t testing.TB, rate, window, burst int64) *algorithm.Limit {
	t.Helper()
	l, err := algorithm.Bucketed(rate, window, burst)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// Counter returns what a call costs a subject.
func Counter(subject string, limit *algorithm.Limit, cost int64) algorithm.Counter {
	return algorithm.Counter{Key: fmt.Appendf(nil, "test:{%s}:name:%s", subject, limit.Span()), Limit: limit, Cost: cost}
}

// Leased returns a counter whose permits are leased for up to calls calls.
func Leased(subject string, limit *algorithm.Limit, cost, calls int64) algorithm.Counter {
	c := Counter(subject, limit, cost)
	c.Lease = calls
	return c
}
