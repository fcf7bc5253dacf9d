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

// eachAlgorithm runs a test for every algorithm that charges, with so many permits a minute, and
// with a clock of its own. A bucket holds as many permits as come back in a minute, so all limits
// are full again after at most two.
func eachAlgorithm(t *testing.T, limit int, test func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit)) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for _, a := range promise.Algorithms() {
			t.Run(a.String(), func(t *testing.T) {
				now.Store(in2065)
				test(t, limiter, now, core.Limit{Max: limit, Window: time.Minute, Algorithm: a})
			})
		}
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

// tookNone tries to take n permits, which must not be there.
func tookNone(t testing.TB, limiter *core.Limiter, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n)
	if err != nil || d.Allowed || d.RetryAfter <= 0 || d.Reason != core.LimitExceeded {
		t.Fatalf("%d of %v: %+v, %v; want them refused, with a wait", n, limit, d, err)
	}
	return d
}

// remains checks how many permits are left of the counter that took uses.
func remains(t testing.TB, limiter *core.Limiter, limit core.Limit, want int) {
	t.Helper()
	wantLeft(t, limiter, "n", "user:a", limit, want)
}

// A bucket that saved its refilled tokens when it refused, but not the time of the refill, was
// refilled for the same span at each refusal.
func TestRefusalDoesNotRefillTwice(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		bucket := core.PerMinute(6).Bucket(6) // one in ten seconds
		took(t, limiter, bucket, 6)
		for range 9 {
			now.pass(time.Second)
			tookNone(t, limiter, bucket, 1)
		}
		now.pass(time.Second)
		took(t, limiter, bucket, 1)
		tookNone(t, limiter, bucket, 1)
	})
}

// A bucket that saved the time when it refused, but not the tokens, never again admitted a client
// that called often.
func TestRefusalDoesNotLoseRefill(t *testing.T) {
	eachAlgorithm(t, 6, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 6)
		opens := tookNone(t, limiter, limit, 1).RetryAfter
		for waited := time.Duration(0); waited < opens-time.Second; waited += time.Second {
			now.pass(time.Second)
			if d := tookNone(t, limiter, limit, 1); d.RetryAfter != opens-waited-time.Second {
				t.Fatalf("after %v of %v another refusal says %v", waited+time.Second, opens, d.RetryAfter)
			}
		}
		now.Store(in2065 + opens.Microseconds())
		took(t, limiter, limit, 1)
	})
}

// Limiters that counted refused calls too never again admitted clients that hammered.
func TestHammeringDoesNotProlongARefusal(t *testing.T) {
	eachAlgorithm(t, 3, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 3)
		opens := tookNone(t, limiter, limit, 3).RetryAfter
		for range 100 {
			now.pass(opens / 200)
			tookNone(t, limiter, limit, 3)
		}
		now.Store(in2065 + opens.Microseconds())
		took(t, limiter, limit, 3)
	})
}

// A time in milliseconds, multiplied by a rate per second, refilled a bucket a thousand times too
// fast.
func TestMillisecondsAreNotSeconds(t *testing.T) {
	for _, window := range []time.Duration{time.Second, time.Minute, 2 * time.Hour} {
		onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
			bucket := core.Limit{Max: 10, Window: window, Algorithm: core.TokenBucket, Burst: 20_000}
			took(t, limiter, bucket, 20_000)
			now.pass(window / 1000)
			remains(t, limiter, bucket, 0)
			now.pass(window - window/1000)
			remains(t, limiter, bucket, 10)
		})
	}
}

// A limiter rounded the refill down, but set its time to now. It lost a fraction with each call, so
// steady callers got less than their rate.
func TestFractionOfAPermitIsNotLost(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		bucket := core.PerSecond(3).Bucket(30)
		took(t, limiter, bucket, 30)
		for range 10 { // a third of a second is no whole number of microseconds
			for range 7 {
				now.pass(time.Second / 10)
				if _, err := limiter.MustCounter("n", bucket).AllowN(background, "user:a", 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		remains(t, limiter, bucket, 0)
		now.pass(10*time.Second - time.Microsecond)
		remains(t, limiter, bucket, 29)
		now.pass(time.Microsecond)
		if d := took(t, limiter, bucket, 30); d.Remaining != 0 || d.ResetAfter != 10*time.Second {
			t.Errorf("full after ten seconds more: %+v", d)
		}
	})
}

// A limiter kept a total beside its parts. The two drifted apart, and from hour to hour fewer calls
// passed.
func TestLimitDoesNotDriftDown(t *testing.T) {
	eachAlgorithm(t, 7, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		const minutes, every = 40, 5 * time.Second
		admitted := 0 // in the last ten minutes
		for i := range int(minutes * time.Minute / every) {
			n := 1 + i%2
			d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n)
			if err != nil {
				t.Fatal(err)
			}
			if last := i >= int((minutes-10)*time.Minute/every); last && d.Allowed {
				admitted += n
			}
			now.pass(every)
		}
		if admitted < 9*6 || admitted > 11*7 { // a call of two may find one left
			t.Errorf("%d in the last ten of %d minutes, at %v", admitted, minutes, limit)
		}
	})
}

// A late call with an older time moved the bucket's time back, and the next call was credited with
// that span a second time.
func TestClockSetBackMintsNothing(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 5)
		for _, back := range []time.Duration{time.Microsecond, time.Second, time.Minute, time.Hour, 24 * time.Hour} {
			now.pass(-back)
			remains(t, limiter, limit, 0)
			tookNone(t, limiter, limit, 1)
		}
	})
}

// After its clock was set back by an hour, a bucket that kept the later time refused for an hour.
func TestClockSetBackAnHourBlocksNobodyForAnHour(t *testing.T) {
	eachAlgorithm(t, 5, func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit) {
		took(t, limiter, limit, 5)
		now.pass(-time.Hour)
		d := tookNone(t, limiter, limit, 5)
		if longest := time.Minute + time.Minute/32; d.RetryAfter > longest {
			t.Fatalf("blocked for %v after the clock was set back, want at most %v", d.RetryAfter, longest)
		}
		now.pass(d.RetryAfter)
		took(t, limiter, limit, 5)
	})
}
