package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	// patient is a timeout that no healthy server exceeds, however busy this machine is.
	patient = time.Minute
	// unending is a timeout that no test waits for.
	unending = time.Hour
)

// TestMain keeps go-redis from logging every connection that these tests break.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	leakcheck.Main(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// limits returns a limit of so many permits for some algorithms, of which none comes back while a
// test runs.
func limits(t testing.TB, most int64) map[string]*algorithm.Limit {
	t.Helper()
	const day = 24 * 3600 * 1_000_000
	bucket, err := algorithm.Bucketed(24, day, most)
	if err != nil {
		t.Fatal(err)
	}
	sliding, fixed := algorithm.Windowed(algorithm.SlidingWindow, most, day), algorithm.Windowed(algorithm.FixedWindow, most, day)
	return map[string]*algorithm.Limit{"sliding window": &sliding, "fixed window": &fixed, "bucket": &bucket}
}

// daily returns a limit of calls a day.
func daily(t testing.TB, most int64) *algorithm.Limit { return limits(t, most)["sliding window"] }

// counter returns a counter of a subject, with a cost of 1.
func counter(subject string, limit *algorithm.Limit) algorithm.Counter {
	key := fmt.Appendf(nil, "test:{%s}:name:%s:%d", strings.ReplaceAll(subject, " ", "-"), limit.Kind.Tag(), limit.Window)
	return algorithm.Counter{Key: key, Limit: limit, Cost: 1}
}

// store is a store that the test closes.
type store struct{ *redisstore.Store }

func newStore(t testing.TB, client redis.UniversalClient, timeout time.Duration) store {
	s := redisstore.New(client, timeout)
	s.JoinKeys("test:{")
	bounded.Cleanup(t, s.Close)
	return store{s}
}

// take takes what the counters cost, all or nothing.
func (s store) take(ctx context.Context, counters ...algorithm.Counter) []algorithm.Verdict {
	return s.ask(ctx, algorithm.AllOrNone, counters...)
}

func (s store) ask(ctx context.Context, m algorithm.Mode, counters ...algorithm.Counter) []algorithm.Verdict {
	op := algorithm.NewOp(m, counters...)
	s.Do(ctx, op)
	return op.Verdicts
}

// lease takes as many calls as fit, up to calls.
func (s store) lease(c algorithm.Counter, calls int64) (granted int64, v algorithm.Verdict) {
	op := algorithm.NewOp(algorithm.AllOrNone, c)
	op.Calls = calls
	s.Do(context.Background(), op)
	return op.Passed, op.Verdicts[0]
}

// mustTake takes what the counters cost, and fails the test if it is not there.
func (s store) mustTake(t testing.TB, counters ...algorithm.Counter) {
	t.Helper()
	for i, v := range s.take(context.Background(), counters...) {
		if !passes(v) {
			t.Fatalf("%s: %+v", counters[i].Key, v)
		}
	}
}

// left returns how many permits a counter has left.
func (s store) left(t testing.TB, c algorithm.Counter) int64 {
	t.Helper()
	v := s.ask(context.Background(), algorithm.Looks, c)[0]
	if v.Err != nil || v.Ended != nil {
		t.Fatalf("%s cannot be looked at: %+v", c.Key, v)
	}
	return v.Remaining
}

func passes(v algorithm.Verdict) bool { return v.RetryAfter == 0 && v.Err == nil && v.Ended == nil }

// together runs a function in n goroutines at once. The one of limitertest would compile the packages
// above this one a second time, with this package's test files in it.
func together(n int, do func(goroutine int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// wantReturn checks that a function returns although a server does not answer, and reports whether it
// does. If it does not return within a minute, it waits for as long as the client does: unending.
func wantReturn(t *testing.T, what string, do func()) bool {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return true
	case <-time.After(patient):
		t.Errorf("%s has not returned within %v", what, patient)
		return false
	}
}

// endlessly makes a client wait for replies for ever.
func endlessly(o *redis.Options) { o.ReadTimeout = unending }

// startOne starts a server, and returns a client of it with go-redis's default options, changed so.
func startOne(t testing.TB, change ...func(*redis.Options)) (*redistest.Server, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	return server, server.Client(t, change...)
}

// mixed is a set of keys that many callers use at once.
type mixed struct {
	name   string
	limits []*algorithm.Limit
	keys   int
	most   int64 // of each key
	passed []atomic.Int64
}

// mixOf returns keys whose counters have this many permits.
func mixOf(t testing.TB, name string, keys int, most int64) *mixed {
	m := &mixed{name: name, keys: keys, most: most, passed: make([]atomic.Int64, keys)}
	for _, limit := range limits(t, most) {
		m.limits = append(m.limits, limit)
	}
	return m
}

func (m *mixed) counter(key int) algorithm.Counter {
	return counter(fmt.Sprint(m.name, key), m.limits[key%len(m.limits)])
}

// use has a crowd take each key about this many times. Calls may fail only if mayFail is set.
func (m *mixed) use(t testing.TB, s store, times int, mayFail bool) {
	t.Helper()
	together(callers, func(i int) {
		for n := range m.keys * times / callers {
			key := (i + n*callers) % m.keys
			switch v := s.take(context.Background(), m.counter(key))[0]; {
			case passes(v):
				m.passed[key].Add(1)
			case v.RetryAfter == 0 && !mayFail:
				t.Errorf("%+v", v)
			}
		}
	})
}

// wantExact checks that each call that passed was charged, and no other, and that no key admitted
// more than its permits.
func (m *mixed) wantExact(t testing.TB, s store) {
	t.Helper()
	for key := range m.keys {
		c, passed := m.counter(key), m.passed[key].Load()
		if left := s.left(t, c); passed > m.most || left != m.most-passed {
			t.Errorf("%s: %d of %d calls passed, and %d are left", c.Key, passed, m.most, left)
		}
	}
}

// keepUsing uses a key set until a condition holds.
func keepUsing(t *testing.T, what string, s store, is func() bool) {
	t.Helper()
	round := 0
	wantSoon(t, what, func() bool {
		m := mixOf(t, fmt.Sprint(t.Name(), what, round), 256, 3)
		round++
		m.use(t, s, 1, false)
		return is()
	})
}
