package migrating

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/redisrate"
)

// perDay is slow enough that no test sees an event come back.
var perDay = redisrate.Limit{Rate: 10, Burst: 10, Period: 24 * time.Hour}

const comesBack = 24 * time.Hour / 10 // an event of perDay

// within reports whether a time is at most so long, and not shorter by more than a busy machine
// takes for a test.
func within(got, want time.Duration) bool { return want-5*time.Minute < got && got <= want }

// The steps are calls on one key, in their order. A step without n is a Reset.
func TestResults(t *testing.T) {
	steps := []struct {
		atMost                bool
		n, allowed, remaining int
		retry, reset          time.Duration // retry 0 stands for -1
	}{
		{n: 1, allowed: 1, remaining: 9, reset: comesBack},
		{n: 3, allowed: 3, remaining: 6, reset: 4 * comesBack},
		{n: 8, remaining: 6, retry: 2 * comesBack, reset: 4 * comesBack},
		{n: 15, remaining: 6, retry: 9 * comesBack, reset: 4 * comesBack}, // never, but redis_rate says so
		{atMost: true, n: 2, allowed: 2, remaining: 4, reset: 6 * comesBack},
		{atMost: true, n: 1 << 30, allowed: 4, reset: 10 * comesBack},
		{atMost: true, n: 5, retry: comesBack, reset: 10 * comesBack},
		{n: 1, retry: comesBack, reset: 10 * comesBack},
		{},
		{n: 10, allowed: 10, reset: 10 * comesBack},
	}
	limitertest.OnEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := redisrate.From(limitertest.New(t, options))
		for i, step := range steps {
			call := limiter.AllowN
			if step.atMost {
				call = limiter.AllowAtMost
			}
			if step.n == 0 {
				if err := limiter.Reset(t.Context(), "alice"); err != nil {
					t.Fatal(err)
				}
				continue
			}
			got, err := call(t.Context(), "alice", perDay, step.n)
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			retry := got.RetryAfter == -1
			if step.retry > 0 {
				retry = within(got.RetryAfter, step.retry)
			}
			if got.Limit != perDay || got.Allowed != step.allowed || got.Remaining != step.remaining || !retry || !within(got.ResetAfter, step.reset) {
				t.Errorf("step %d %+v: %+v", i, step, got)
			}
		}
	})
}

// A call for no event reports, and counts nothing. Only AllowAtMost says when the next one is there.
func TestNoEvents(t *testing.T) {
	limiter := redisrate.From(limitertest.New(t, core.Options{Redis: redistest.Start(t).Client(t)}))
	for _, left := range []int{10, 0} {
		one, err := limiter.AllowN(t.Context(), "alice", perDay, 0)
		if err != nil || one.Allowed != 0 || one.Remaining != left || one.RetryAfter != -1 {
			t.Errorf("AllowN with %d left: %+v, %v", left, one, err)
		}
		most, err := limiter.AllowAtMost(t.Context(), "alice", perDay, 0)
		if err != nil || most.Allowed != 0 || most.Remaining != left || (most.RetryAfter == -1) != (left > 0) {
			t.Errorf("AllowAtMost with %d left: %+v, %v", left, most, err)
		}
		if _, err := limiter.AllowN(t.Context(), "alice", perDay, left); err != nil {
			t.Fatal(err)
		}
	}
}

// Reset reaches every Period of this Limiter, and the usual ones of other processes, whatever the
// key.
func TestReset(t *testing.T) {
	options := core.Options{Redis: redistest.Start(t).Client(t)}
	here, elsewhere := redisrate.From(limitertest.New(t, options)), redisrate.From(limitertest.New(t, options))
	keys := []string{"", "203.0.113.7", "::1", "{alice}:x", "rate:", strings.Repeat("long", 100)}
	for _, key := range keys {
		for _, period := range []time.Duration{time.Second, time.Minute, time.Hour, 15 * time.Minute} {
			limit := redisrate.Limit{Rate: 1, Burst: 10_000, Period: period}
			resets := elsewhere
			if period == 15*time.Minute {
				resets = here
			}
			got, err := here.AllowN(t.Context(), key, limit, limit.Burst)
			if err != nil || got.Allowed != limit.Burst {
				t.Fatalf("%q, %v: %+v, %v", key, limit, got, err)
			}
			if err := resets.Reset(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if got, err = here.AllowN(t.Context(), key, limit, 0); err != nil || got.Remaining != limit.Burst {
				t.Errorf("%q, %v after Reset: %+v, %v", key, limit, got, err)
			}
		}
	}
}

// Two keys never share a counter, and the keys in Redis are none of redis_rate's.
func TestKeys(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiter := redisrate.NewLimiter(client)
	keys := []string{"", "a", "rate:a", "{a}", "a:redis_rate"}
	for _, key := range keys {
		if got, err := limiter.Allow(t.Context(), key, perDay); err != nil || got.Remaining != 9 {
			t.Errorf("%q: %+v, %v", key, got, err)
		}
	}
	counters := 0
	for _, key := range client.Keys(t.Context(), "*").Val() {
		if !strings.HasPrefix(key, "redisrate:{") {
			t.Errorf("the key %q", key)
		}
		if strings.Contains(key, "{rate:") {
			counters++
		}
	}
	if counters != len(keys) {
		t.Errorf("%d counters", counters)
	}
}

// Several processes together allow what one would.
func TestExactOverProcesses(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limit := redisrate.Limit{Rate: 10, Burst: 800, Period: 300 * 24 * time.Hour} // no event comes back
	var allowed atomic.Int64
	var callers sync.WaitGroup
	for range 3 {
		limiter := redisrate.From(limitertest.New(t, core.Options{Redis: client}))
		for caller := range 10 {
			call := limiter.AllowN
			if caller%2 == 0 {
				call = limiter.AllowAtMost
			}
			callers.Go(func() {
				for i := range 40 {
					got, err := call(t.Context(), "alice", limit, i%4)
					if err != nil {
						t.Error(err)
						return
					}
					allowed.Add(int64(got.Allowed))
				}
			})
		}
	}
	callers.Wait()
	if got := allowed.Load(); got != 800 {
		t.Errorf("%d events of 800 were allowed", got)
	}
}

// calls are the methods that need an answer.
func calls(l *redisrate.Limiter) map[string]func(context.Context) (*redisrate.Result, error) {
	return map[string]func(context.Context) (*redisrate.Result, error){
		"Allow":         func(ctx context.Context) (*redisrate.Result, error) { return l.Allow(ctx, "alice", perDay) },
		"AllowN":        func(ctx context.Context) (*redisrate.Result, error) { return l.AllowN(ctx, "alice", perDay, 2) },
		"AllowN beyond": func(ctx context.Context) (*redisrate.Result, error) { return l.AllowN(ctx, "alice", perDay, 11) },
		"AllowAtMost":   func(ctx context.Context) (*redisrate.Result, error) { return l.AllowAtMost(ctx, "alice", perDay, 2) },
		"AllowAtMost 0": func(ctx context.Context) (*redisrate.Result, error) { return l.AllowAtMost(ctx, "alice", perDay, 0) },
		"Reset":         func(ctx context.Context) (*redisrate.Result, error) { return nil, l.Reset(ctx, "alice") },
	}
}

// A Redis that does not answer is an error, and allows nothing.
func TestStoreErrors(t *testing.T) {
	dead := limitertest.DeadRedis(t)
	stopped := redistest.Start(t)
	client := stopped.Client(t)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	stopped.Stop()
	for where, limiter := range map[string]*redisrate.Limiter{
		"nobody listens": redisrate.From(limitertest.New(t, dead)),
		"Redis hangs":    redisrate.From(limitertest.New(t, core.Options{Redis: client, Timeout: 50 * time.Millisecond})),
	} {
		for name, call := range calls(limiter) {
			got, err := call(context.Background())
			var failed *core.StoreError
			if got != nil || !errors.As(err, &failed) {
				t.Errorf("%s, %s: %+v, %v", where, name, got, err)
			}
		}
	}
}

// The end of the caller's own context is the error, also while Redis hangs.
func TestContextEnds(t *testing.T) {
	server := redistest.Start(t)
	limiter := redisrate.From(limitertest.New(t, core.Options{Redis: server.Client(t)})) // whose Timeout is longer than a caller's
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(limiter) {
		if got, err := call(canceled); got != nil || err != context.Canceled {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	server.Stop()
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := limiter.Allow(soon, "alice", perDay); got != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Redis hangs: %+v, %v", got, err)
	}
}

// Without a client, nothing could be shared, so that no service starts like that by mistake.
func TestNeedsAClient(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"nil": nil, "a nil client": (*redis.Client)(nil)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			redisrate.NewLimiter(client)
		}()
	}
}
