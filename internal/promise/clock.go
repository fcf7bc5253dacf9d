package promise

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// timedClient is a client whose servers have the bubble's time. The core takes it for a
// UniversalClient of an unknown type, of which it uses only Process.
type timedClient struct {
	redis.UniversalClient
	outside *outside
	step    atomic.Int64 // by how many nanoseconds the servers' clocks are ahead of the bubble's

	mu    sync.Mutex
	texts map[string]string // of the scripts that were sent, by their SHA-1
}

// Process implements redis.UniversalClient. It passes the time to scripts. Other commands are sent
// unchanged.
func (c *timedClient) Process(_ context.Context, cmd redis.Cmder) error {
	args := slices.Clone(cmd.Args())
	if name := args[0]; name == "eval" || name == "evalsha" {
		text, err := c.script(name == "eval", args[1].(string))
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		args[0], args[1] = "eval", text
		args = append(args, c.now().UnixMicro())
	}
	real := sentOnce{redis.NewCmd(context.Background(), args...)}
	c.outside.do(func() { _ = c.UniversalClient.Process(context.Background(), real) })
	cmd.SetErr(real.Err())
	switch cmd := cmd.(type) {
	case interface{ SetVal(any) }:
		cmd.SetVal(real.Val())
	case interface{ SetVal(string) }:
		cmd.SetVal(fmt.Sprint(real.Val()))
	}
	return real.Err()
}

// now returns the time by the servers' clocks.
func (c *timedClient) now() time.Time { return time.Now().Add(time.Duration(c.step.Load())) }

// sentOnce is a command that go-redis does not repeat. Repeating a command whose reply was lost
// would charge twice.
type sentOnce struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (sentOnce) NoRetry() bool { return true }

// script returns the timed form of a script, given its text or, once the text is known, its SHA-1.
func (c *timedClient) script(isText bool, of string) (timed string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sha := of
	if isText {
		sha = redis.NewScript(of).Hash()
		if c.texts[sha], err = scriptclock.TakeTimeAndExpire(of); err != nil {
			return "", err
		}
	}
	timed, known := c.texts[sha]
	if !known {
		return "", unknownScript{}
	}
	return timed, nil
}

// unknownScript is the error of a server for EVALSHA of a script that it has not seen.
type unknownScript struct{}

func (unknownScript) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }

// RedisError implements redis.Error.
func (unknownScript) RedisError() {}

// outside is a goroutine outside of every bubble, for the network, which needs real time: its
// deadlines would be wrong in a bubble. While a bubble waits for this goroutine, its time stands
// still, because the channels do not belong to the bubble.
type outside struct {
	mu   sync.Mutex
	work chan func()
	done chan struct{}
}

func newOutside(t testing.TB) *outside {
	o := &outside{work: make(chan func()), done: make(chan struct{})}
	go func() {
		for do := range o.work {
			do()
			o.done <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(o.work) })
	return o
}

// do runs a function on that goroutine and returns when it has returned. The function must not end
// the goroutine, as t.FailNow does.
func (o *outside) do(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.work <- f
	<-o.done
}
