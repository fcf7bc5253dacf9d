package promise

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// outsideClient sends commands from outside of every bubble, each once and without the caller's
// deadline.
type outsideClient struct {
	redis.UniversalClient
	outside *outside
}

// Process implements redis.UniversalClient.
func (c outsideClient) Process(_ context.Context, cmd redis.Cmder) error {
	once := sentOnce{redis.NewCmd(context.Background(), cmd.Args()...)}
	c.outside.do(func() { _ = c.UniversalClient.Process(context.Background(), once) })
	cmd.(*redis.Cmd).SetVal(once.Val())
	cmd.SetErr(once.Err())
	return once.Err()
}

// sentOnce is a command that go-redis does not repeat. Repeating a command whose reply was lost
// would charge twice.
type sentOnce struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (sentOnce) NoRetry() bool { return true }

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
