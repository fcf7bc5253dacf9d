package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// lostNode gives up on every pipeline, while its commands stay on their way and are read there.
type lostNode struct {
	mu   sync.Mutex
	seen map[string]bool
	on   sync.WaitGroup
}

func (n *lostNode) process(ctx context.Context, _ redis.Cmder) error { return ctx.Err() }

func (n *lostNode) pipe(_ context.Context, cmds []redis.Cmder) error {
	onWay := append([]redis.Cmder(nil), cmds...)
	release := make(chan struct{})
	n.on.Go(func() {
		<-release
		for _, cmd := range onWay {
			key := *cmd.Args()[3].(*string)
			n.mu.Lock()
			n.seen[key] = true
			n.mu.Unlock()
		}
	})
	defer close(release)
	return context.DeadlineExceeded
}

// What a pipeline was made of that is still on its way is not used for the next: each command keeps its own key.
func TestLostPipelinesKeepTheirCommands(t *testing.T) {
	const calls = 400
	n := &lostNode{seen: make(map[string]bool)}
	s := newShard(n, 10, &common{timeout: time.Minute, listener: nobody{}})
	limit := algorithm.Windowed(algorithm.SlidingWindow, 5, 1_000_000)
	var all sync.WaitGroup
	for i := range calls {
		key := fmt.Sprintf("test:{k%d}:name:sw1:1000000", i)
		all.Go(func() {
			ticket := s.queue(context.Background(), []algorithm.Counter{{Key: []byte(key), Limit: &limit, Cost: 1}}, true, 1, uint64(i)<<32)
			if err := ticket.wait(); err != nil || ticket.err == nil {
				t.Errorf("%v, %v, want the pipeline's error", err, ticket.err)
			}
		})
	}
	all.Wait()
	n.on.Wait()
	if len(n.seen) != calls {
		t.Errorf("%d keys arrived, want %d", len(n.seen), calls)
	}
}

// stoppedNode answers no pipeline until it is released.
type stoppedNode struct{ asked, release chan struct{} }

func (n stoppedNode) process(ctx context.Context, _ redis.Cmder) error { return ctx.Err() }

func (n stoppedNode) pipe(context.Context, []redis.Cmder) error {
	n.asked <- struct{}{}
	<-n.release
	return errAwaited
}

// Whose time is up while the pipeline is on its way may have been charged, also where that time began before the call came to its lane.
func TestWhoseTimeIsUpOnTheWayMayHaveBeenCharged(t *testing.T) {
	n := stoppedNode{make(chan struct{}, 1), make(chan struct{})}
	defer close(n.release)
	s := newShard(n, 10, &common{timeout: time.Minute, listener: nobody{}})
	limit := algorithm.Windowed(algorithm.SlidingWindow, 5, 1_000_000)
	ctx, end := context.WithCancel(context.Background())
	ticket := s.queue(ctx, []algorithm.Counter{{Key: []byte("test:{k}:name:sw1:1000000"), Limit: &limit, Cost: 1}}, true, 1, 1)
	<-n.asked
	end()
	if err := ticket.wait(); classOf(err) != failure.Timeout || !errors.Is(err, context.Canceled) {
		t.Errorf("class %d: %v", classOf(err), err)
	}
}
