package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
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
