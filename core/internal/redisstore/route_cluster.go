package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

// clusterRouter is the router of a Redis Cluster. Keys with one hash tag lie in one slot.
type clusterRouter struct {
	client      *redis.ClusterClient
	table       *shardTable
	slotsKnown  atomic.Bool // whether the client can tell a slot's master without asking the servers
	slotLoads   singleflight.Group
	loadStarted atomic.Int64 // when the latest load started, by time.Time's UnixNano
	contacted   sync.Map     // the *connectivity of each *redis.Client that the loads have used
	bootstrap   *shard       // stands for all servers until the slots are known; only its breaker is used
}

func newClusterRouter(client *redis.ClusterClient, table *shardTable) *clusterRouter {
	table.cluster = client
	weakly := weak.Make(table) // the client may outlive the store, and keeps its callbacks
	client.OnNewNode(func(node *redis.Client) {
		if table := weakly.Value(); table != nil {
			table.addServer(node)
		}
	})
	addr := strings.Join(client.Options().Addrs, ",")
	none := &serverWatch{addr: addr, common: table.common}
	b := newBreaker(table.timeout, func(c breakerChange) { table.inBackground(func() { table.reportBreaker(c, none) }) })
	return &clusterRouter{client: client, table: table, bootstrap: &shard{addr: addr, breaker: b}}
}

// pinned is shard, because no key of a cluster moves while its server is down.
func (r *clusterRouter) pinned(ctx context.Context, key []byte) (*shard, error) {
	return r.shard(ctx, key)
}

// shard returns the master of the key's slot, as far as the client knows. Only the first load of
// the slots asks the servers. While no server returns the slots, a breaker keeps calls from
// waiting.
func (r *clusterRouter) shard(ctx context.Context, key []byte) (*shard, error) {
	copied := string(key) // a load may outlive the call
	if !r.slotsKnown.Load() {
		if err := r.bootstrap.breaker.run(func() error { return r.loadSlots(ctx, copied) }); err != nil {
			return nil, err
		}
		r.slotsKnown.Store(true)
	}
	var master *redis.Client
	err := r.table.call(func() (err error) {
		master, err = r.client.MasterForKey(ctx, copied)
		return err
	})
	if err != nil {
		r.slotsKnown.Store(false)
		return nil, err
	}
	return r.table.shardFor(master), nil
}

// slotLoadTimeout bounds a load of the slots, except for an answer that go-redis waits for at its
// end.
const slotLoadTimeout = 5 * time.Second

// loadSlots waits until the client knows the slots.
func (r *clusterRouter) loadSlots(ctx context.Context, key string) error {
	var failed error
	select {
	case result := <-r.startLoad(ctx, key):
		var reply redis.Error
		if result.Err == nil || errors.As(result.Err, &reply) || errors.Is(result.Err, redis.ErrClosed) {
			return result.Err
		}
		failed = fmt.Errorf("%w: %w", errNoSlots, result.Err)
	case <-ctx.Done():
		if time.Since(time.Unix(0, r.loadStarted.Load())) < mostOf(r.table.timeout) {
			// The caller could not wait. That shows nothing about the servers.
			return &unreached{cause: errNoSlots, ended: true}
		}
		r.slotLoads.Forget("slots")
		failed = errNoSlots
	}
	r.probeContacted()
	return &unreached{cause: failed}
}

// startLoad starts a load of the slots, unless one is running. go-redis does not bound it by the
// context, so one load is made for all callers, who may leave before it ends. It asks the servers
// in random order, one after the other, and may hang at the first. So loadSlots waits for it only
// once, and the next call that the breaker lets through starts another load.
func (r *clusterRouter) startLoad(ctx context.Context, key string) <-chan singleflight.Result {
	return r.slotLoads.DoChan("slots", panics.Result(func() (any, error) {
		r.loadStarted.Store(time.Now().UnixNano())
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), slotLoadTimeout)
		defer cancel()
		return nil, r.table.call(func() error {
			_, err := r.client.MasterForKey(bounded, key)
			return err
		})
	}))
}

// probeContacted finds out why the servers that the loads have used do not answer.
func (r *clusterRouter) probeContacted() {
	for _, addr := range r.client.Options().Addrs {
		if client := r.table.serverAt(addr); client != nil {
			c, _ := r.contacted.LoadOrStore(client, &connectivity{client: client, common: r.table.common})
			c.(*connectivity).connectFailed()
		}
	}
}

func (r *clusterRouter) isReady() bool { return r.slotsKnown.Load() }

// proof returns nil, so no script has the keys of two calls. Even two keys of one slot may be on
// two servers while the slot moves.
func (r *clusterRouter) proof() *oneServerProof { return nil }

func (r *clusterRouter) all() []*shard {
	if !r.slotsKnown.Load() {
		return []*shard{r.bootstrap}
	}
	return r.table.all()
}
