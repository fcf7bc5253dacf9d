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

// wallClock is a test's own time on either engine, in microseconds since the epoch. It begins with a
// minute, in the year 2065: a Redis with another clock would take anything written earlier for the
// past, and drop it.
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
		// Only Redis has this time.
		core.AskRedis(limiter)
		test(t, limiter, &client.now)
	})
}

// wallClockClient is a client of a real Redis whose scripts get their time from the test.
type wallClockClient struct {
	redis.UniversalClient
	now   wallClock
	mu    sync.Mutex
	texts map[string]string // the scripts as they run here, by the SHA-1 of their own text
}

func atWallClock(client redis.UniversalClient) *wallClockClient {
	c := &wallClockClient{UniversalClient: client, texts: make(map[string]string)}
	c.now.Store(in2065)
	return c
}

// Process implements redis.UniversalClient.
func (c *wallClockClient) Process(ctx context.Context, cmd redis.Cmder) error {
	args := slices.Clone(cmd.Args())
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
