package core_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// The files faults_*_test.go hold, by theme, what has gone wrong in limiters before, each as a test
// that says in one line what it was. Where time matters they run on both engines by a clock of the
// test's own.

// wallClock is that clock, in microseconds since the epoch. It begins with a minute, in the year
// 2065: a Redis whose own clock says otherwise would take what is written earlier for the past, and
// drop it.
type wallClock struct{ atomic.Int64 }

const in2065 = 3_000_000_000_000_000

func (c *wallClock) pass(d time.Duration) { c.Add(d.Microseconds()) }

// onBothClocks runs a test in process and on a real Redis, at a time of its own.
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
		core.AskRedis(limiter) // what went wrong in these tests went wrong there, and its time is none of this process's
		test(t, limiter, &client.now)
	})
}

// eachAlgorithm runs a test for every algorithm that charges, with so many permits a minute, at a
// time of its own. A bucket holds as many as come back in a minute, so all of them are full again
// after at most two.
func eachAlgorithm(t *testing.T, limit int, test func(t *testing.T, limiter *core.Limiter, now *wallClock, limit core.Limit)) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		for a := core.SlidingWindow; a < core.Concurrency; a++ {
			t.Run(a.String(), func(t *testing.T) {
				now.Store(in2065)
				test(t, limiter, now, core.Limit{Max: limit, Window: time.Minute, Algorithm: a})
			})
		}
	})
}

// wallClockClient is a client of a real Redis whose scripts are told the time.
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

// script is the text of a script call as it is to run; a script that only its name is known of is
// left to Redis, which does not know it either.
func (c *wallClockClient) script(args []any) (text string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name := args[0]; name {
	case "eval":
		c.texts[redis.NewScript(args[1].(string)).Hash()] = toldTime(args[1].(string))
		text, known = c.texts[redis.NewScript(args[1].(string)).Hash()], true
	case "evalsha":
		text, known = c.texts[args[1].(string)]
	}
	return text, known
}

// toldTime returns a script that takes the time as its last argument, and first drops every key
// whose time to live is over.
func toldTime(text string) string {
	told, err := scriptclock.TellAndExpire(text)
	if err != nil {
		panic(err)
	}
	return told
}

// took asks for n permits, which must be there.
func took(t testing.TB, limiter *core.Limiter, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n)
	if err != nil || !d.Allowed {
		t.Fatalf("%d of %v: %+v, %v; want them allowed", n, limit, d, err)
	}
	return d
}

// tookNone asks for n permits, which must not be there.
func tookNone(t testing.TB, limiter *core.Limiter, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter("n", limit).AllowN(background, "user:a", n)
	if err != nil || d.Allowed || d.RetryAfter <= 0 || d.Reason != core.LimitExceeded {
		t.Fatalf("%d of %v: %+v, %v; want them refused, with a wait", n, limit, d, err)
	}
	return d
}

// remains checks what is left of the counter that took works on.
func remains(t testing.TB, limiter *core.Limiter, limit core.Limit, want int) {
	t.Helper()
	wantLeft(t, limiter, "n", "user:a", limit, want)
}
