package promise

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// timedClient is a client whose servers' clocks stand as the bubble's does. The core knows it as a
// UniversalClient of no known type, of which it uses Process alone.
type timedClient struct {
	redis.UniversalClient
	outside *outside
	step    time.Duration // by how much the servers' clocks are ahead of the bubble's

	mu    sync.Mutex
	texts map[string]string // of the scripts that were sent, by their SHA-1
}

// Process implements redis.UniversalClient. Scripts are told the time; everything else goes as it
// is.
func (c *timedClient) Process(_ context.Context, cmd redis.Cmder) error {
	args := slices.Clone(cmd.Args())
	if name := args[0]; name == "eval" || name == "evalsha" {
		text, err := c.script(name == "eval", args[1].(string))
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		args[0], args[1] = "eval", text
		args = append(args, time.Now().Add(c.step).UnixMicro())
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

// sentOnce is a command that go-redis does not repeat: one that the servers executed and whose
// answer was lost would charge twice.
type sentOnce struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (sentOnce) NoRetry() bool { return true }

// script is the timed form of a script, by its text or, once that was seen, by its SHA-1.
func (c *timedClient) script(isText bool, of string) (timed string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sha := of
	if isText {
		sha = redis.NewScript(of).Hash()
		if c.texts[sha], err = scriptclock.TellAndExpire(of); err != nil {
			return "", err
		}
	}
	timed, known := c.texts[sha]
	if !known {
		return "", unknownScript{}
	}
	return timed, nil
}

// unknownScript is what a server answers to EVALSHA that has not seen the text yet.
type unknownScript struct{}

func (unknownScript) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }

// RedisError implements redis.Error.
func (unknownScript) RedisError() {}

// outside is a goroutine outside of every bubble, for what needs real time: the network, whose
// deadlines a bubble's clock would get wrong. A bubble's time stands still while it waits for this
// goroutine, because its channels are not the bubble's.
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

// do runs a function there and returns when it has ended. The function must not end its goroutine,
// as t.FailNow does.
func (o *outside) do(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.work <- f
	<-o.done
}
