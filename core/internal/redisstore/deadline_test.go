package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	// timeout is the store's where servers do not answer. hurry is an earlier deadline of a caller.
	timeout = 1500 * time.Millisecond
	hurry   = 20 * time.Millisecond
	callers = 64
)

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// takeInTime takes a permit, and checks that the call returns, and with the right error. For a hurried
// caller the call has ended, and for the others the store has failed.
func (s store) takeInTime(t *testing.T, hurried bool, c algorithm.Counter) {
	t.Helper()
	ctx := context.Background()
	if hurried {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hurry)
		defer cancel()
	}
	var v algorithm.Verdict
	if !wantReturn(t, string(c.Key), func() { v = s.take(ctx, c)[0] }) {
		return
	}
	switch {
	case hurried && (!errors.Is(v.Ended, context.DeadlineExceeded) || v.Err != nil):
		t.Errorf("%s: %+v, want the caller's deadline", c.Key, v)
	case !hurried && (v.Err == nil || isContextError(v.Err) || v.Ended != nil):
		t.Errorf("%s: %+v, want a failure of the store", c.Key, v)
	}
}

// An unhealthy server does not slow down the keys of the others. All calls for those end while the
// calls for its own keys still wait.
func (d deployment) oneUnhealthy(t *testing.T) {
	limit := daily(t, 1000)
	sick, well := d.on(t, 0, limit), d.on(t, 1, limit)
	client := d.connect(t, options{readTimeout: patient})
	s := newStore(t, client, patient)
	s.mustTake(t, sick)
	s.mustTake(t, well)
	d.servers[0].Stop()
	defer d.proceed(t, client)
	var waiting sync.WaitGroup
	var over atomic.Int64
	together(callers, func(i int) {
		if i%2 == 0 {
			waiting.Go(func() {
				v := s.take(context.Background(), sick)[0]
				if over.Add(1); !passes(v) {
					t.Errorf("%+v of a server that runs on", v)
				}
			})
			return
		}
		if v := s.take(context.Background(), well)[0]; !passes(v) {
			t.Errorf("%+v", v)
		}
	})
	if n := over.Load(); n > 0 {
		t.Errorf("%d calls on the sick server were over before those on the other", n)
	}
	d.servers[0].Continue()
	waiting.Wait()
}

// A pool whose only connection hangs delays no call past Timeout, or past its caller's deadline.
func TestPoolOfOneConnectionWhileStopped(t *testing.T) {
	server, client := startOne(t, func(o *redis.Options) { o.PoolSize = 1 }, endlessly)
	s, c := newStore(t, client, timeout), counter("subject", daily(t, 100))
	waits := newStore(t, client, unending) // so that nothing but a deadline ends a call
	waits.mustTake(t, c)
	server.Stop()
	defer server.Continue()
	together(32, func(i int) {
		if i%2 == 0 {
			waits.takeInTime(t, true, c)
			return
		}
		s.takeInTime(t, false, c)
	})
	server.Continue()
	wantSoon(t, "the store decides again", func() bool { return passes(s.take(context.Background(), c)[0]) })
}

// A cluster that hangs when the process starts is like a server that hangs: its breaker opens, and
// calls do not wait for the timeout. One healthy master is enough to begin with.
func TestAClusterThatHangsFromTheStart(t *testing.T) {
	cluster := redistest.StartCluster(t)
	d := deployment{name: "cluster", slot: clusterSlot(cluster)}
	c := d.on(t, 0, daily(t, 100))
	for _, server := range cluster.Nodes() {
		server.Stop()
	}
	s := newStore(t, cluster.Client(t), timeout)
	state := func() (state redisstore.ShardState) {
		for _, state = range s.Shards() {
		}
		return state
	}
	for asked := 0; ; asked++ {
		v := s.take(context.Background(), c)[0]
		if v.Err == nil {
			t.Fatalf("%+v", v)
		}
		if strings.Contains(v.Err.Error(), "not asked") {
			break
		}
		if asked == 10 {
			t.Fatalf("%d calls waited for the timeout, %+v", asked, s.Shards())
		}
	}
	cluster.Nodes()[0].Continue()
	wantSoon(t, "the store decides", func() bool { return passes(s.take(context.Background(), c)[0]) })
	if got := state(); got.Addr != cluster.Addrs()[0] || got.Breaker != "closed" {
		t.Errorf("%+v", got)
	}
	for _, server := range cluster.Nodes() {
		server.Continue()
	}
}
