package localfirst_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/localfirst"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
)

// patient is a timeout that nothing here takes, however busy the machine.
const patient = 20 * time.Second

// Spans, in microseconds.
const (
	second = 1_000_000
	minute = 60 * second
	hour   = 60 * minute
)

// shared is a store that stands for Redis: every store that is put before it is a process of its own. It counts how often it was asked
// to decide, and does what a test wants it to do before and after.
type shared struct {
	*memstore.Store
	asked         atomic.Int64
	before, after func() // of each question; nil: nothing
	beforeBack    func() // of what is given back
	backBegun     chan struct{}
	beforeReset   func()
	ill           atomic.Bool
	illFor        string       // for the counters of this subject alone
	calls         atomic.Int64 // how many calls the last trip asked for
	giveBack      func([]algorithm.Charge)
	background    sync.WaitGroup
}

func newShared(t testing.TB, maxKeys int) *shared {
	s := &shared{Store: memstore.New(maxKeys, nil)}
	t.Cleanup(s.Store.Close)
	return s
}

func (s *shared) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	s.asked.Add(1)
	s.decide(ctx, counters, charge, verdicts)
}

func (s *shared) decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	if s.before != nil {
		s.before()
	}
	s.Store.Decide(ctx, counters, charge, verdicts)
	if s.after != nil {
		s.after()
	}
	for i := range verdicts {
		if s.ill.Load() || s.illFor != "" && strings.Contains(string(counters[i].Key), s.illFor) {
			verdicts[i] = algorithm.Verdict{Err: context.Canceled}
		}
	}
}

// Lease does as the store in Redis.
func (s *shared) Lease(ctx context.Context, c *algorithm.Counter, calls int64) (int64, algorithm.Verdict) {
	s.asked.Add(1)
	s.calls.Store(calls)
	counter, verdict := []algorithm.Counter{*c}, make([]algorithm.Verdict, 1)
	s.Store.Decide(ctx, counter, false, verdict)
	fits := min(calls, verdict[0].Remaining/c.Cost)
	counter[0].Cost = max(1, fits) * c.Cost
	s.decide(ctx, counter, true, verdict)
	if err := ctx.Err(); err != nil {
		return 0, algorithm.Verdict{Ended: err}
	}
	if verdict[0].RetryAfter != 0 || verdict[0].Err != nil {
		return 0, verdict[0]
	}
	return max(1, fits), verdict[0]
}

func (s *shared) GiveBack(ctx context.Context, charges []algorithm.Charge) error {
	if s.beforeBack != nil {
		s.beforeBack()
	}
	return s.Store.GiveBack(ctx, charges)
}

func (s *shared) Reset(ctx context.Context, key []byte) error {
	if s.beforeReset != nil {
		s.beforeReset()
	}
	return s.Store.Reset(ctx, key)
}

// GiveBackBy keeps the function for a test to call: this is one shard, and has nothing to give
// back.
func (s *shared) GiveBackBy(giveBack func([]algorithm.Charge)) { s.giveBack = giveBack }

// InBackground runs what Close waits for.
func (s *shared) InBackground(do func()) { s.background.Go(do) }

// Close leaves the store open for the other processes.
func (s *shared) Close() { s.background.Wait() }

// wantAsked checks how often the store was asked since the last look.
func (s *shared) wantAsked(t testing.TB, want int64) {
	t.Helper()
	if got := s.asked.Swap(0); got != want {
		t.Fatalf("the store was asked %d times, want %d", got, want)
	}
}

// newProcess is a process with that store behind it.
func newProcess(t testing.TB, behind localfirst.Shared) *localfirst.Store {
	s := localfirst.New(behind, patient, 1000)
	t.Cleanup(s.Close)
	return s
}

func windowed(kind algorithm.Kind, most, window int64) *algorithm.Limit {
	return new(algorithm.Windowed(kind, most, window))
}

func bucket(t testing.TB, rate, window, burst int64) *algorithm.Limit {
	t.Helper()
	l, err := algorithm.Bucketed(rate, window, burst)
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// counter is what a call costs a subject.
func counter(subject string, limit *algorithm.Limit, cost int64) algorithm.Counter {
	window, calendar := limit.Spell()
	key := fmt.Appendf(nil, "test:{%s}:name:%s:%d%s", subject, limit.Kind.Tag(), window, calendar)
	return algorithm.Counter{Key: key, Limit: limit, Cost: cost}
}

// ask asks for what the counters cost.
func ask(s *localfirst.Store, counters ...algorithm.Counter) []algorithm.Verdict {
	verdicts := make([]algorithm.Verdict, len(counters))
	s.Decide(context.Background(), counters, true, verdicts)
	return verdicts
}

// mustTake takes what the counters cost, which must be there.
func mustTake(t testing.TB, s *localfirst.Store, counters ...algorithm.Counter) algorithm.Verdict {
	t.Helper()
	verdicts := ask(s, counters...)
	for _, v := range verdicts {
		if v.RetryAfter != 0 || v.Err != nil || v.Ended != nil {
			t.Fatalf("%s: %+v, want it taken", counters[0].Key, v)
		}
	}
	return verdicts[0]
}

// mustRefuse asks for what must not be there, and checks who says so.
func mustRefuse(t testing.TB, s *localfirst.Store, from algorithm.Origin, counters ...algorithm.Counter) algorithm.Verdict {
	t.Helper()
	verdicts := ask(s, counters...)
	if v := verdicts[0]; v.RetryAfter <= 0 || v.From != from {
		t.Fatalf("%s: %+v, want it refused from %d", counters[0].Key, v, from)
	}
	return verdicts[0]
}

// left is what the store has left of a counter.
func left(t testing.TB, s *shared, c algorithm.Counter) int64 {
	t.Helper()
	verdicts := make([]algorithm.Verdict, 1)
	s.Store.Decide(context.Background(), []algorithm.Counter{c}, false, verdicts)
	return verdicts[0].Remaining
}

// shards are a store of which every subject lies on a server of its own. Its verdicts come as from
// several: those that pass are as if nobody had been charged for a call that another one refused.
type shards struct{ *shared }

func (s shards) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	s.asked.Add(1)
	s.each(ctx, counters, false, verdicts)
	if charge && algorithm.Passes(counters, verdicts) {
		s.each(ctx, counters, true, verdicts)
	}
}

func (s shards) each(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	part := uint8(0)
	for from := 0; from < len(counters); part++ {
		to := from + 1
		for to < len(counters) && tag(counters[to]) == tag(counters[from]) {
			to++
		}
		s.decide(ctx, counters[from:to], charge, verdicts[from:to])
		for i := range verdicts[from:to] {
			verdicts[from+i].Part = part
		}
		from = to
	}
}

func tag(c algorithm.Counter) string {
	_, rest, _ := strings.Cut(string(c.Key), "{")
	of, _, _ := strings.Cut(rest, "}")
	return of
}
