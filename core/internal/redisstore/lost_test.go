package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// stoppedNode answers no pipeline until it is released.
type stoppedNode struct{ asked, release chan struct{} }

func (n stoppedNode) process(ctx context.Context, _ command) error { return ctx.Err() }

func (n stoppedNode) noConnection() error { return errUnsent }

func (n stoppedNode) processAll(context.Context, []redis.Cmder) error {
	n.asked <- struct{}{}
	<-n.release
	return errAwaited
}

// Whose time is up while the pipeline is on its way may have been charged, also where that time began before the call came to its lane.
func TestWhoseTimeIsUpOnTheWayMayHaveBeenCharged(t *testing.T) {
	n := stoppedNode{make(chan struct{}, 1), make(chan struct{})}
	defer close(n.release)
	s := newShard(n, 10, newCommon(time.Minute))
	limit := algorithm.Windowed(algorithm.SlidingWindow, 5, 1_000_000)
	ctx, end := context.WithCancel(context.Background())
	counters := []algorithm.Counter{{Key: []byte("test:{k}:name:sw1:1000000"), Limit: &limit, Cost: 1}}
	call := s.enqueue(ctx, request{counters, true, 1, 1})
	<-n.asked
	end()
	if err := call.await(); classOf(err) != failure.Timeout || !errors.Is(err, context.Canceled) {
		t.Errorf("class %d: %v", classOf(err), err)
	}
}
