package core_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/internal/promise"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// clock is a test's own time, in microseconds since the epoch. It starts at the beginning of a UTC
// day.
type clock struct{ now atomic.Int64 }

const dayOne = 20_000 * 24 * time.Hour

func (c *clock) add(d time.Duration) { c.now.Add(d.Microseconds()) }

// atTestTime makes a limiter that counts in this process by a clock that the test controls.
func atTestTime(t testing.TB, options core.Options) (*core.Limiter, *clock) {
	t.Helper()
	limiter, c := newLimiter(t, options), new(clock)
	c.add(dayOne)
	core.UseClock(limiter, c.now.Load)
	return limiter, c
}

// lasting are limits whose counters do not change by themselves while a test runs.
func lasting(n int) map[string]core.Limit {
	limits := map[string]core.Limit{"month": core.PerCalendarMonth(n, "Pacific/Auckland")}
	for _, limit := range promise.Lasting(n) {
		limits[limit.Algorithm.String()] = limit
	}
	return limits
}

// eachLasting runs a test for each of them on both engines.
func eachLasting(t *testing.T, n int, test func(t *testing.T, limiter *core.Limiter, limit core.Limit)) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for name, limit := range lasting(n) {
			t.Run(name, func(t *testing.T) { test(t, limiter, limit) })
		}
	})
}

// charge takes n permits, which must be there.
func charge(t testing.TB, limiter *core.Limiter, name, subject string, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter(name, limit).AllowN(background, subject, n)
	if err != nil || !d.Allowed {
		t.Fatalf("AllowN(%q, %q, %v, %d): %+v, %v", name, subject, limit, n, d, err)
	}
	return d
}

// serve makes one call of a guard whose handler, if it runs, ends with this status. It returns the
// status that the caller gets.
func serve(guard *core.Guard, v adapter.View, ends int) int {
	answer := guard.Check(v)
	if answer.Refusal != nil {
		return answer.Refusal.Status
	}
	answer.Run(func() int { return ends })
	return ends
}

// wantServed checks the statuses that the callers of several calls get.
func wantServed(t testing.TB, guard *core.Guard, v adapter.View, ends int, want ...int) {
	t.Helper()
	for i, status := range want {
		if got := serve(guard, v, ends); got != status {
			t.Fatalf("call %d that would end with %d: status %d, want %d", i+1, ends, got, status)
		}
	}
}

const ok = http.StatusOK

// leaving returns the same call by a caller who leaves when leave is called.
func leaving(v *fakeView) (_ *fakeView, leave func()) {
	v.ctx, leave = context.WithCancel(background)
	return v, leave
}

// Some tests of this package show what has gone wrong in limiters before. Each says in one line
// what it was. Where time matters they run on both engines by a clock that the test controls.

// wallClock is that clock, in microseconds since the epoch. It begins with a minute, in the year
// 2065: a Redis with another clock would take anything written earlier for the past, and drop it.
type wallClock struct{ atomic.Int64 }

const in2065 = 3_000_000_000_000_000

func (c *wallClock) pass(d time.Duration) { c.Add(d.Microseconds()) }

// onBothClocks runs a test in process and on a real Redis, with a clock of its own.
func onBothClocks(t *testing.T, test func(t *testing.T, limiter *core.Limiter, now *wallClock)) {
	t.Run("memory", func(t *testing.T) {
		limiter, now := newLimiter(t, core.Options{}), new(wallClock)
		now.Store(in2065)
		core.UseClock(limiter, now.Load)
		test(t, limiter, now)
	})
	t.Run("redis", func(t *testing.T) {
		client := atWallClock(redistest.Start(t).Client(t))
		limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
		// The mistakes of these tests were made in Redis, whose time is not this process's.
		core.AskRedis(limiter)
		test(t, limiter, &client.now)
	})
}

// wallClockClient is a client of a real Redis whose scripts get their time from the test.
type wallClockClient struct {
	redis.UniversalClient
	now    wallClock
	mu     sync.Mutex
	texts  map[string]string // the scripts as they run here, by the SHA-1 of their own text
	before func(args []any)  // sees every command as the limiter sent it; may be nil
}

func atWallClock(client redis.UniversalClient) *wallClockClient {
	c := &wallClockClient{UniversalClient: client, texts: make(map[string]string)}
	c.now.Store(in2065)
	return c
}

// Process implements redis.UniversalClient.
func (c *wallClockClient) Process(ctx context.Context, cmd redis.Cmder) error {
	args := slices.Clone(cmd.Args())
	if c.before != nil {
		c.before(cmd.Args())
	}
	if text, ok := c.script(args); ok {
		args[0], args[1] = "eval", text
		args = append(args, c.now.Load())
	}
	done := redis.NewCmd(ctx, args...)
	err := c.UniversalClient.Process(ctx, done)
	cmd.SetErr(err)
	switch cmd := cmd.(type) {
	case interface{ SetVal(any) }:
		cmd.SetVal(done.Val())
	case interface{ SetVal(string) }:
		cmd.SetVal(fmt.Sprint(done.Val()))
	}
	return err
}

// script returns the text of a script call in the form in which it is to run. A call by name alone
// of an unknown script goes to Redis, which does not know it either.
func (c *wallClockClient) script(args []any) (text string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name := args[0]; name {
	case "eval":
		c.texts[redis.NewScript(args[1].(string)).Hash()] = withTime(args[1].(string))
		text, known = c.texts[redis.NewScript(args[1].(string)).Hash()], true
	case "evalsha":
		text, known = c.texts[args[1].(string)]
	}
	return text, known
}

// withTime returns a script that takes the time as its last argument, and first drops every key
// that has expired.
func withTime(text string) string {
	timed, err := scriptclock.TakeTimeAndExpire(text)
	if err != nil {
		panic(err)
	}
	return timed
}

// took takes n permits, which must be there.
func took(t testing.TB, limiter *core.Limiter, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n)
	if err != nil || !d.Allowed {
		t.Fatalf("%d of %v: %+v, %v; want them allowed", n, limit, d, err)
	}
	return d
}

// remains checks how many permits are left of the counter that took uses.
func remains(t testing.TB, limiter *core.Limiter, limit core.Limit, want int) {
	t.Helper()
	wantLeft(t, limiter, "n", "user:a", limit, want)
}
