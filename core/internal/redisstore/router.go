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
	ready() bool
	// apart says whether keys with different tags may lie on different servers, where one script cannot reach them all.
	apart() bool
	// all are the shards that it has found so far.
	all() []*shard
}

func newRouter(client redis.UniversalClient, c *common) router {
	known := &shards{common: c}
	switch client := client.(type) {
	case *redis.Client:
		return oneShard{known.of(client)}
	case *redis.Ring:
		return ring{client, known}
	case *redis.ClusterClient:
		return newCluster(client, known)
	default: // of a type that we do not know: it may be a cluster
		unknown := newShard(anyNode{heldClient{client}}, 0, c)
		unknown.several = true
		return oneShard{unknown}
	}
}

// oneShard is a single server, the master that Sentinel names, or a client of a type that we do not know.
type oneShard struct{ only *shard }

func (o oneShard) shard(context.Context, []byte) (*shard, error) { return o.only, nil }

func (o oneShard) ready() bool { return true }

func (o oneShard) apart() bool { return o.only.several }

func (o oneShard) all() []*shard { return []*shard{o.only} }

// ring is a client-side hash ring of single servers. Keys with one tag lie on one of them.
type ring struct {
	client *redis.Ring
	shards *shards
}

func (r ring) shard(_ context.Context, key []byte) (*shard, error) {
	client, err := r.client.GetShardClientForKey(string(key))
	if err != nil {
		return nil, err
	}
	return r.shards.of(client), nil
}

func (r ring) ready() bool { return true }

func (r ring) apart() bool { return true }

func (r ring) all() []*shard { return r.shards.all() }

// cluster is a Redis Cluster: the keys with one tag lie in one slot.
type cluster struct {
	client *redis.ClusterClient
	shards *shards
	known  atomic.Bool // whether the client knows the slots, so that it can tell a master without asking the servers
	loads  singleflight.Group
	began  atomic.Int64 // when the latest look at the slots did, as of time.Time's UnixNano
	looked sync.Map     // the *reach of each *redis.Client that the looks have come to
	first  *shard       // stands for all servers until the slots are known; nothing but its breaker is used
}

// newCluster makes the router of a cluster.
func newCluster(client *redis.ClusterClient, known *shards) *cluster {
	known.cluster = client
	weakly := weak.Make(known) // the client may outlive the store, and keeps its callbacks
	client.OnNewNode(func(node *redis.Client) {
		if known := weakly.Value(); known != nil {
			known.meet(node)
		}
	})
	addr := strings.Join(client.Options().Addrs, ",")
	none := &watch{addr: addr, all: known.common}
	b := newBreaker(known.timeout, func(c change) { known.inBackground(func() { known.tell(c, none) }) })
	return &cluster{client: client, shards: known, first: &shard{addr: addr, breaker: b}}
}

// shard is the master of the key's slot, as far as the client knows. Only the first look at the
// slots asks the servers. While no server tells the slots, its breaker spares the calls the wait.
func (c *cluster) shard(ctx context.Context, key []byte) (*shard, error) {
	of := string(key) // the look may outlive the call
	if !c.known.Load() {
		if err := c.first.breaker.run(func() error { return c.learn(ctx, of) }); err != nil {
			return nil, err
		}
		c.known.Store(true)
	}
	master, err := c.client.MasterForKey(ctx, of)
	if err != nil {
		c.known.Store(false)
		return nil, err
	}
	return c.shards.of(master), nil
}

// lookFor bounds a look at the slots, but for an answer that go-redis waits for at its end.
const lookFor = 5 * time.Second

// learn waits until the client knows the slots. go-redis does not bound its look at the slots by
// the context, so one look is made for all callers, who may leave before it ends. It asks the
// servers in random order, one after the other, and may hang at the first. So it is waited for once
// only, and the next call that is let through begins another.
func (c *cluster) learn(ctx context.Context, key string) error {
	loaded := c.loads.DoChan("slots", func() (any, error) {
		c.began.Store(time.Now().UnixNano())
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
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
		if time.Since(time.Unix(0, c.began.Load())) < nearly(c.shards.timeout) {
			return &unreached{cause: errNoSlots, ended: true} // the caller could not wait, which says nothing
		}
		c.loads.Forget("slots")
		failed = errNoSlots
	}
	for _, addr := range c.client.Options().Addrs {
		if client := c.shards.at(addr); client != nil { // the look has come to it
			known, _ := c.looked.LoadOrStore(client, &reach{client: client, all: c.shards.common})
			known.(*reach).fails()
		}
	}
	return &unreached{cause: failed}
}

func (c *cluster) ready() bool { return c.known.Load() }

func (c *cluster) apart() bool { return true }

func (c *cluster) all() []*shard {
	if !c.known.Load() {
		return []*shard{c.first}
	}
	return c.shards.all()
}

// shards are the servers of a ring or a cluster, each made once. They come and go, so the table is thrown away when it has
// grown past any cluster's size.
type shards struct {
	*common
	cluster *redis.ClusterClient // nil of a ring, and of a single server
	mu      sync.RWMutex
	made    map[*redis.Client]*shard
	met     map[string]*redis.Client // the servers of a cluster, asked or not, by address
}

const maxShards = 1024

func (s *shards) of(client *redis.Client) *shard {
	s.mu.RLock()
	known, ok := s.made[client]
	s.mu.RUnlock()
	if ok {
		return known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.made[client]; ok {
		return known
	}
	if s.made == nil || len(s.made) >= maxShards {
		s.made = make(map[*redis.Client]*shard)
	}
	s.made[client] = s.open(client)
	return s.made[client]
}

// open makes the shard of a server.
func (s *shards) open(client *redis.Client) *shard {
	addr := client.Options().Addr
	look := &watch{addr: addr, all: s.common}
	b := newBreaker(s.timeout, func(c change) { s.inBackground(func() { s.tell(c, look) }) }) // a lane does not wait for the owner's log
	bound := bind(client, b, s.common)
	look.read = func(ctx context.Context) (string, error) { return bound.prompt.Info(ctx).Result() }
	var n node = bound
	if s.cluster != nil {
		n = clusterNode{bound, client, s}
		b.failed = func() { // a replica may have taken the master's place
			s.cluster.ReloadState(context.Background())
		}
	}
	opened := newShard(n, client.Options().PoolSize, s.common)
	opened.addr, opened.breaker, opened.watch = addr, b, look
	return opened
}

// tell tells of a breaker. A server that is back is looked at.
func (s *shards) tell(c change, look *watch) {
	if c.open {
		s.listener.BreakerOpened(look.addr)
		return
	}
	s.listener.BreakerClosed(look.addr, c.after)
	look.look()
}

func (s *shards) all() []*shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.made))
}

// sameTag says whether all keys have the same hash tag, and with it the same cluster slot and ring shard.
func sameTag(counters []algorithm.Counter) bool {
	for i := 1; i < len(counters); i++ {
		if !bytes.Equal(tag(counters[i].Key), tag(counters[0].Key)) {
			return false
		}
	}
	return true
}

// tag is what stands between the braces of a key.
func tag(key []byte) []byte {
	open, end := bytes.IndexByte(key, '{'), bytes.IndexByte(key, '}')
	return key[open+1 : end]
}
