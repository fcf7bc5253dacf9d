package redisstore

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// shardTable holds the shards of a ring or a cluster, one for each server. Servers come and go, so
// the table is emptied when it has grown past any cluster's size.
type shardTable struct {
	*common
	cluster  *redis.ClusterClient // nil for a ring and for a single server
	mu       sync.RWMutex
	byClient map[*redis.Client]*shard
	byAddr   map[string]*redis.Client // the servers of a cluster, whether they have a shard or not
}

const maxShards = 1024

// shardFor returns the shard of a server, which is made once.
func (t *shardTable) shardFor(client *redis.Client) *shard {
	t.mu.RLock()
	known, ok := t.byClient[client]
	t.mu.RUnlock()
	if ok {
		return known
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.byClient[client]; ok {
		return known
	}
	if t.byClient == nil || len(t.byClient) >= maxShards {
		t.byClient = make(map[*redis.Client]*shard)
	}
	t.byClient[client] = t.newShardFor(client)
	return t.byClient[client]
}

func (t *shardTable) newShardFor(client *redis.Client) *shard {
	addr := client.Options().Addr
	watch := &serverWatch{addr: addr, common: t.common}
	// The listener is called in the background, so that no lane waits for the owner's log.
	b := newBreaker(t.timeout, func(c breakerChange) { t.inBackground(func() { t.reportBreaker(c, watch) }) })
	bound := newBoundClient(client, b, t.common)
	watch.readInfo = func(ctx context.Context) (info string, err error) {
		err = t.call(func() error {
			info, err = bound.byContext.Info(ctx).Result()
			return err
		})
		return info, err
	}
	var n node = bound
	if t.cluster != nil {
		n, b.inCluster = clusterNode{bound, client, t}, true
		b.onFailure = func() { // a replica may have taken the master's place
			t.cluster.ReloadState(context.Background())
		}
	}
	watch.mark = &memoryMark{node: n, common: t.common, client: client, cluster: t.cluster}
	s := newShard(n, client.Options().PoolSize, t.common)
	s.addr, s.breaker, s.server = addr, b, watch
	if t.cluster == nil {
		s.proof = &oneServerProof{node: bound, common: t.common, addr: addr}
		b.onFailure = s.proof.end
	}
	return s
}

// reportBreaker reports the change of a breaker. When it closes, another server may have taken the
// place of the one that failed.
func (t *shardTable) reportBreaker(c breakerChange, watch *serverWatch) {
	if c.open {
		t.listener.BreakerOpened(watch.addr)
		return
	}
	t.listener.BreakerClosed(watch.addr, c.after)
	watch.mayBeAnother()
}

func (t *shardTable) all() []*shard {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.byClient))
}

// addServer stores, by its address, a server that go-redis has made a client for.
func (t *shardTable) addServer(client *redis.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byAddr == nil || len(t.byAddr) >= maxShards {
		t.byAddr = make(map[string]*redis.Client)
	}
	t.byAddr[client.Options().Addr] = client
}

// serverAt returns the client of the server at an address that a reply names, or nil if it is not
// known.
func (t *shardTable) serverAt(addr string) *redis.Client {
	if end := strings.LastIndexByte(addr, ':'); end >= 0 { // an IPv6 address comes without brackets
		addr = net.JoinHostPort(strings.Trim(addr[:end], "[]"), addr[end+1:])
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byAddr[addr]
}
