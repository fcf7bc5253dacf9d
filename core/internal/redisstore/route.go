package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// router finds the shard that holds a key.
type router interface {
	// shard is where a script with this key goes to. It may ask the servers first, unless it is ready.
	shard(ctx context.Context, key []byte) (*shard, error)
	isReady() bool
	// apart says whether keys with different tags may lie on different servers, where one script cannot reach them all.
	isSharded() bool
	// all are the shards that it has found so far.
	all() []*shard
}

func newRouter(client redis.UniversalClient, c *common) router {
	known := &shardTable{common: c}
	switch client := client.(type) {
	case *redis.Client:
		return singleShard{known.shardFor(client)}
	case *redis.Ring:
		return ringRouter{client, known}
	case *redis.ClusterClient:
		return newCluster(client, known)
	default: // of a type that we do not know: it may be a cluster
		unknown := newShard(unknownNode{detachedClient{client}}, 0, c)
		unknown.several = true
		return singleShard{unknown}
	}
}

// oneShard is a single server, the master that Sentinel names, or a client of a type that we do not know.
type singleShard struct{ only *shard }

func (o singleShard) shard(context.Context, []byte) (*shard, error) { return o.only, nil }

func (o singleShard) isReady() bool { return true }

func (o singleShard) isSharded() bool { return o.only.several }

func (o singleShard) all() []*shard { return []*shard{o.only} }

// ring is a client-side hash ring of single servers. Keys with one tag lie on one of them.
type ringRouter struct {
	client *redis.Ring
	shards *shardTable
}

func (r ringRouter) shard(_ context.Context, key []byte) (*shard, error) {
	client, err := r.client.GetShardClientForKey(string(key))
	if err != nil {
		return nil, err
	}
	return r.shards.shardFor(client), nil
}

func (r ringRouter) isReady() bool { return true }

func (r ringRouter) isSharded() bool { return true }

func (r ringRouter) all() []*shard { return r.shards.all() }

// cluster is a Redis Cluster: the keys with one tag lie in one slot.
type clusterRouter struct {
	client      *redis.ClusterClient
	shards      *shardTable
	slotsKnown  atomic.Bool // whether the client knows the slots, so that it can tell a master without asking the servers
	slotLoads   singleflight.Group
	loadStarted atomic.Int64 // when the latest look at the slots did, as of time.Time's UnixNano
	contacted   sync.Map     // the *reach of each *redis.Client that the looks have come to
	bootstrap   *shard       // stands for all servers until the slots are known; nothing but its breaker is used
}

// newCluster makes the router of a cluster.
func newCluster(client *redis.ClusterClient, known *shardTable) *clusterRouter {
	known.cluster = client
	weakly := weak.Make(known) // the client may outlive the store, and keeps its callbacks
	client.OnNewNode(func(node *redis.Client) {
		if known := weakly.Value(); known != nil {
			known.addServer(node)
		}
	})
	addr := strings.Join(client.Options().Addrs, ",")
	none := &serverWatch{addr: addr, common: known.common}
	b := newBreaker(known.timeout, func(c breakerChange) { known.inBackground(func() { known.reportBreaker(c, none) }) })
	return &clusterRouter{client: client, shards: known, bootstrap: &shard{addr: addr, breaker: b}}
}

// shard is the master of the key's slot, as far as the client knows. Only the first look at the
// slots asks the servers. While no server tells the slots, its breaker spares the calls the wait.
func (c *clusterRouter) shard(ctx context.Context, key []byte) (*shard, error) {
	of := string(key) // the look may outlive the call
	if !c.slotsKnown.Load() {
		if err := c.bootstrap.breaker.run(func() error { return c.loadSlots(ctx, of) }); err != nil {
			return nil, err
		}
		c.slotsKnown.Store(true)
	}
	master, err := c.client.MasterForKey(ctx, of)
	if err != nil {
		c.slotsKnown.Store(false)
		return nil, err
	}
	return c.shards.shardFor(master), nil
}

// lookFor bounds a look at the slots, but for an answer that go-redis waits for at its end.
const slotLoadTimeout = 5 * time.Second

// learn waits until the client knows the slots. go-redis does not bound its look at the slots by
// the context, so one look is made for all callers, who may leave before it ends. It asks the
// servers in random order, one after the other, and may hang at the first. So it is waited for once
// only, and the next call that is let through begins another.
func (c *clusterRouter) loadSlots(ctx context.Context, key string) error {
	loaded := c.slotLoads.DoChan("slots", func() (any, error) {
		c.loadStarted.Store(time.Now().UnixNano())
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), slotLoadTimeout)
		defer cancel()
		_, err := c.client.MasterForKey(bounded, key)
		return nil, err
	})
	var failed error
	select {
	case result := <-loaded:
		var reply redis.Error
		if result.Err == nil || errors.As(result.Err, &reply) || errors.Is(result.Err, redis.ErrClosed) {
			return result.Err
		}
		failed = fmt.Errorf("%w: %w", errNoSlots, result.Err)
	case <-ctx.Done():
		if time.Since(time.Unix(0, c.loadStarted.Load())) < mostOf(c.shards.timeout) {
			return &unreached{cause: errNoSlots, ended: true} // the caller could not wait, which says nothing
		}
		c.slotLoads.Forget("slots")
		failed = errNoSlots
	}
	for _, addr := range c.client.Options().Addrs {
		if client := c.shards.serverAt(addr); client != nil { // the look has come to it
			known, _ := c.contacted.LoadOrStore(client, &connectivity{client: client, common: c.shards.common})
			known.(*connectivity).connectFailed()
		}
	}
	return &unreached{cause: failed}
}

func (c *clusterRouter) isReady() bool { return c.slotsKnown.Load() }

func (c *clusterRouter) isSharded() bool { return true }

func (c *clusterRouter) all() []*shard {
	if !c.slotsKnown.Load() {
		return []*shard{c.bootstrap}
	}
	return c.shards.all()
}

// shards are the servers of a ring or a cluster, each made once. They come and go, so the table is thrown away when it has
// grown past any cluster's size.
type shardTable struct {
	*common
	cluster  *redis.ClusterClient // nil of a ring, and of a single server
	mu       sync.RWMutex
	byClient map[*redis.Client]*shard
	byAddr   map[string]*redis.Client // the servers of a cluster, asked or not, by address
}

const maxShards = 1024

func (s *shardTable) shardFor(client *redis.Client) *shard {
	s.mu.RLock()
	known, ok := s.byClient[client]
	s.mu.RUnlock()
	if ok {
		return known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.byClient[client]; ok {
		return known
	}
	if s.byClient == nil || len(s.byClient) >= maxShards {
		s.byClient = make(map[*redis.Client]*shard)
	}
	s.byClient[client] = s.newShardFor(client)
	return s.byClient[client]
}

// open makes the shard of a server.
func (s *shardTable) newShardFor(client *redis.Client) *shard {
	addr := client.Options().Addr
	look := &serverWatch{addr: addr, common: s.common}
	b := newBreaker(s.timeout, func(c breakerChange) { s.inBackground(func() { s.reportBreaker(c, look) }) }) // a lane does not wait for the owner's log
	bound := newBoundClient(client, b, s.common)
	look.readInfo = func(ctx context.Context) (string, error) { return bound.byContext.Info(ctx).Result() }
	var n node = bound
	if s.cluster != nil {
		n = clusterNode{bound, client, s}
		b.onFailure = func() { // a replica may have taken the master's place
			s.cluster.ReloadState(context.Background())
		}
	}
	opened := newShard(n, client.Options().PoolSize, s.common)
	opened.addr, opened.breaker, opened.server = addr, b, look
	return opened
}

// tell tells of a breaker. A server that is back is looked at.
func (s *shardTable) reportBreaker(c breakerChange, look *serverWatch) {
	if c.open {
		s.listener.BreakerOpened(look.addr)
		return
	}
	s.listener.BreakerClosed(look.addr, c.after)
	look.refresh()
}

func (s *shardTable) all() []*shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.byClient))
}

// sameTag says whether all keys have the same hash tag, and with it the same cluster slot and ring shard.
func sameHashTag(counters []algorithm.Counter) bool {
	for i := 1; i < len(counters); i++ {
		if !bytes.Equal(hashTag(counters[i].Key), hashTag(counters[0].Key)) {
			return false
		}
	}
	return true
}

// tag is what stands between the braces of a key.
func hashTag(key []byte) []byte {
	open, end := bytes.IndexByte(key, '{'), bytes.IndexByte(key, '}')
	return key[open+1 : end]
}
