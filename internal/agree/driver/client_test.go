package driver

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// client is a client whose server has the time of the driver. The core takes it for a UniversalClient
// of an unknown type, of which it uses only Process.
type client struct {
	redis.UniversalClient
	ahead atomic.Int64 // by how many nanoseconds the server's clock is ahead of time.Now
	down  atomic.Bool  // the server cannot be reached
	work  chan func()
	done  chan struct{}

	mu      sync.Mutex
	scripts map[string]*redis.Script // in their timed form, by the SHA-1 of the original
}

const (
	readClock = "redis.call('TIME')"
	// expire takes the time from the last argument, and deletes the keys that have expired by it, as the
	// server would by its own clock.
	expire = `local agreed = table.remove(ARGV) + 0
for _, key in ipairs(KEYS) do
  local at = redis.call('PEXPIRETIME', key)
  if at > 0 and at * 1000 <= agreed then redis.call('DEL', key) end
end
`
	prelude = expire + `agreed = {string.format('%.0f', math.floor(agreed / 1000000)), string.format('%.0f', agreed % 1000000)}
`
)

// connect returns a client of the server that listens on a unix socket or at an address. The network
// needs real time, so a goroutine outside of every bubble sends the commands. While a bubble waits for
// it, the bubble's time stands still, because the channels do not belong to the bubble.
func connect(network, addr string) *client {
	c := &client{
		UniversalClient: redis.NewClient(&redis.Options{Network: network, Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute}),
		work:            make(chan func()), done: make(chan struct{}), scripts: make(map[string]*redis.Script),
	}
	go func() {
		for do := range c.work {
			do()
			c.done <- struct{}{}
		}
	}()
	return c
}

// outside runs a function on that goroutine.
func (c *client) outside(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work <- f
	<-c.done
}

// now returns the time of the server.
func (c *client) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

var expireScript = redis.NewScript(expire)

// Process implements redis.UniversalClient. It passes the time to scripts. Other commands are sent
// unchanged, after the keys have expired that they may name.
func (c *client) Process(_ context.Context, cmd redis.Cmder) error {
	if c.down.Load() {
		cmd.SetErr(&net.OpError{Op: "dial", Net: "unix", Err: syscall.ECONNREFUSED})
		return cmd.Err()
	}
	args, now := cmd.Args(), c.now().UnixMicro()
	if args[0] != "eval" && args[0] != "evalsha" {
		c.outside(func() {
			_ = expireScript.Run(context.Background(), c.UniversalClient, named(args[1:]), now).Err()
			_ = c.UniversalClient.Process(context.Background(), cmd)
		})
		return cmd.Err()
	}
	var val any
	var err error
	c.outside(func() { val, err = c.run(slices.Clone(args), now) })
	cmd.SetErr(err)
	switch cmd := cmd.(type) {
	case interface{ SetVal(any) }:
		cmd.SetVal(val)
	case interface{ SetVal([]string) }:
		values, _ := val.([]any)
		var texts []string
		for _, value := range values {
			texts = append(texts, fmt.Sprint(value))
		}
		cmd.SetVal(texts)
	case interface{ SetVal(string) }:
		cmd.SetVal(fmt.Sprint(val))
	}
	return err
}

// named returns the arguments that may be keys.
func named(args []any) (keys []string) {
	for _, arg := range args {
		if key, ok := arg.(string); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// run runs a script at a time, in microseconds.
func (c *client) run(args []any, now int64) (any, error) {
	sha := args[1].(string)
	if args[0] == "eval" {
		text := sha
		sha = redis.NewScript(text).Hash()
		if c.scripts[sha] == nil {
			c.scripts[sha] = redis.NewScript(prelude + strings.ReplaceAll(text, readClock, "agreed"))
		}
	}
	script, known := c.scripts[sha]
	if !known {
		return nil, unknownScript{}
	}
	args[0], args[1] = "evalsha", script.Hash()
	args = append(args, now)
	cmd := redis.NewCmd(context.Background(), args...)
	if err := c.UniversalClient.Process(context.Background(), cmd); redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err := script.Load(context.Background(), c.UniversalClient).Err(); err != nil {
			return nil, err
		}
		cmd = redis.NewCmd(context.Background(), args...)
		_ = c.UniversalClient.Process(context.Background(), cmd)
	}
	return cmd.Val(), cmd.Err()
}

// unknownScript is the error of a server for EVALSHA of a script that it has not seen.
type unknownScript struct{}

func (unknownScript) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }

// RedisError implements redis.Error.
func (unknownScript) RedisError() {}

// lives is a script that replies with the keys of subjects, and when each expires, in milliseconds since
// the epoch.
const lives = `local all = {}
for _, key in ipairs(redis.call('KEYS', '*:{[^%]*')) do
  table.insert(all, key)
  table.insert(all, tostring(redis.call('PEXPIRETIME', key)))
end
return all`

// expiries returns in how many milliseconds the keys of subjects expire, by what they hold, in order.
// Otherwise their names are the library's own business.
func (c *client) expiries() (all []string) {
	now := c.now().UnixMilli()
	c.outside(func() {
		keys, err := c.UniversalClient.Eval(context.Background(), lives, nil).StringSlice()
		if err != nil {
			panic(err)
		}
		for ; len(keys) > 0; keys = keys[2:] {
			expires, _ := strconv.ParseInt(keys[1], 10, 64)
			_, key, _ := strings.Cut(keys[0], "}:")
			_, holds, _ := strings.Cut(key, ":")
			holds, _, _ = strings.Cut(holds, ":")
			holds = strings.TrimRight(holds, "0123456789") // the layout
			if expires < 0 {
				all = append(all, holds+"=never")
			} else if expires > now {
				all = append(all, fmt.Sprint(holds, "=", expires-now))
			}
		}
	})
	slices.Sort(all)
	return all
}

// expire deletes all keys that have expired.
func (c *client) expire() {
	now := c.now().UnixMicro()
	c.outside(func() {
		keys, err := c.UniversalClient.Keys(context.Background(), "*").Result()
		if err == nil {
			err = expireScript.Run(context.Background(), c.UniversalClient, keys, now).Err()
		}
		if err != nil && err != redis.Nil {
			panic(err)
		}
	})
}

// flush empties the server.
func (c *client) flush() {
	c.outside(func() {
		if err := c.UniversalClient.FlushAll(context.Background()).Err(); err != nil {
			panic(err)
		}
	})
}
