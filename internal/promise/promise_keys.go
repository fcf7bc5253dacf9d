package promise

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// EveryKeyDies: every write gives a key a time to live of at most two windows, or until a bucket is
// full. A key that lost its time to live blocks nobody, and gets a new one with the next write.
// Peeks and refusals write no key.
func EveryKeyDies(t *testing.T, e Engine) {
	lab := e.newLab(t)
	lab.eachLimit(t, "a time to live", func(c counter, f facts) {
		c.peek()
		c.take(0)
		if keys := lab.keys(c.t, c.prefix); len(keys) != 0 {
			c.t.Errorf("looking at a counter that nobody used wrote %v", keys)
		}
		for _, wait := range []time.Duration{0, 0, time.Microsecond, c.limit.Window / 32, c.limit.Window / 3, c.limit.Window, 5 * c.limit.Window} {
			time.Sleep(wait)
			c.take(1)
			lab.wantDying(c, f)
		}
	})
	lab.eachLimit(t, "a time to live that was lost", func(c counter, f facts) {
		c.useUp()
		lab.persist(c.t, c.prefix)
		c.mustRefuse(1) // it is still used up
		time.Sleep(f.full(c.limit))
		c.sameAs(c.of("a fresh one"), "a key without a time to live, when its counter is fresh again")
		c.mustTake(atOnce(c.limit))
		lab.wantDying(c, f)
	})
	e.keysGo(t)
	if e.inProcess() {
		memoryIsGivenBack(t, lab)
	}
}

// wantDying checks that there are keys, and that all of them expire in time.
func (l *lab) wantDying(c counter, f facts) {
	c.t.Helper()
	keys := l.keys(c.t, c.prefix)
	if len(keys) == 0 && l.client != nil {
		c.t.Fatal("nothing is counted in the servers")
	}
	// A time to live is in milliseconds, so the last one may be a part of one.
	wantDead(c.t, keys, time.Now().Add(f.lives(c.limit)+time.Millisecond))
}

// wantDead checks that keys expire by the time latest.
func wantDead(t testing.TB, keys map[string]keyState, latest time.Time) {
	t.Helper()
	for key, state := range keys {
		if state.expires.IsZero() || state.expires.After(latest) {
			t.Errorf("%s dies at %v, want %v at the latest", key, state.expires.UTC(), latest.UTC())
		}
	}
}

// keysGo checks that keys expire by the servers' own clocks.
func (e Engine) keysGo(t *testing.T) {
	options, servers := e.Options(t), e.clients(t)
	limiter := newLimiter(t, options)
	for _, f := range algorithms {
		for i := range 10 {
			limit := core.Limit{Max: 5, Window: 20 * time.Millisecond, Algorithm: f.Algorithm}
			counter{t: t, limiter: limiter, prefix: options.Prefix, name: "name", subject: fmt.Sprint(i), limit: limit}.mustTake(1)
		}
	}
	strikes := limiter.MustGuard(core.Rule{Name: "strikes", Limit: core.PerSecond(1).Fixed(), Key: byCaller, Ban: core.Ban{After: 1, For: time.Second}})
	limitertest.Eventually(t, "a ban", func() bool { return reasonOf(strikes.Check(callBy(context.Background(), "refused"))) == core.Banned })
	if !redistest.WaitUntil(func() bool {
		keys, err := keysOf(servers, options.Prefix)
		return err == nil && len(keys) == 0
	}, patient) {
		t.Error("there are keys that do not expire")
	}
}

// clients returns a client of each server, which bypasses the cluster.
func (e Engine) clients(t testing.TB) (all []*redis.Client) {
	for _, server := range e.Servers {
		all = append(all, server.Client(t))
	}
	return all
}

// memoryIsGivenBack: once their counters are fresh again, a flood of callers leaves nothing in this
// process.
func memoryIsGivenBack(t *testing.T, lab *lab) {
	const flood = 50_000
	lab.bubble(t, func(t *testing.T, options core.Options) {
		options.MaxKeys = flood
		limiter := newLimiter(t, options)
		before := heap()
		for i := range flood {
			_, _ = limiter.MustCounter("name", core.PerSecond(10)).Allow(context.Background(), fmt.Sprintf("%064d", i))
		}
		full := heap() - before
		time.Sleep(5 * time.Second)
		if left := heap() - before; full < flood*64 || left > full/4 {
			t.Errorf("%d counters take %d bytes, and once they are fresh again %d", flood, full, left)
		}
		runtime.KeepAlive(limiter)
	})
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one frees the contents of pools
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
