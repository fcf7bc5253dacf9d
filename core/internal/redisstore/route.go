package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// router finds the shard of a key.
type router interface {
	// shard returns the shard to which a script with this key is sent. It may ask the servers
	// first, unless the router is ready.
	shard(ctx context.Context, key []byte) (*shard, error)
	// pinned is shard for a key whose server stays the same while that server is down: in a Ring, the
	// client sends other keys to the other servers then.
	pinned(ctx context.Context, key []byte) (*shard, error)
	// isReady reports whether shard answers without asking the servers.
	isReady() bool
	// proof returns the proof that one server holds all keys, or nil if there are several servers.
	// Without it, no script may have keys with different hash tags.
	proof() *oneServerProof
	// all returns the shards that were found so far.
	all() []*shard
}

func newRouter(client redis.UniversalClient, c *common) router {
	table := &shardTable{common: c}
	switch client := client.(type) {
	case *redis.Client:
		return singleShard{table.shardFor(client)}
	case *redis.Ring:
		return ringRouter{client, table}
	case *redis.ClusterClient:
		return newClusterRouter(client, table)
	default: // a client of unknown type, which may be a cluster
		return singleShard{newShard(unknownNode{detachedClient{c, client}}, 0, c)}
	}
}

// singleShard is the router of a single server, of the master that Sentinel names, and of a client
// of unknown type.
type singleShard struct{ only *shard }

func (r singleShard) shard(context.Context, []byte) (*shard, error) { return r.only, nil }

func (r singleShard) pinned(context.Context, []byte) (*shard, error) { return r.only, nil }

func (r singleShard) isReady() bool { return true }

func (r singleShard) proof() *oneServerProof { return r.only.proof }

func (r singleShard) all() []*shard { return []*shard{r.only} }

// ringRouter is the router of a client-side hash ring of single servers. Keys with one hash tag lie
// on one of them.
type ringRouter struct {
	client *redis.Ring
	table  *shardTable
}

func (r ringRouter) shard(_ context.Context, key []byte) (*shard, error) {
	client, err := r.client.GetShardClientForKey(string(key))
	if err != nil {
		return nil, err
	}
	return r.table.shardFor(client), nil
}

// pinned chooses among the servers that the Ring was made with, by their names.
func (r ringRouter) pinned(_ context.Context, key []byte) (*shard, error) {
	var best uint64
	var addr string
	for name, at := range r.client.Options().Addrs {
		weight := fnv.New64a()
		weight.Write([]byte(name))
		weight.Write(hashTag(key))
		if sum := weight.Sum64(); addr == "" || sum > best {
			best, addr = sum, at
		}
	}
	for _, known := range r.table.all() {
		if known.addr == addr {
			return known, nil
		}
	}
	for _, client := range r.client.GetShardClients() { // those that are up
		if client.Options().Addr == addr {
			return r.table.shardFor(client), nil
		}
	}
	return nil, &failure.Error{Class: failure.Unreachable, Err: fmt.Errorf("the server of a key that is never moved is down: %s", addr)}
}

func (r ringRouter) isReady() bool { return true }

func (r ringRouter) proof() *oneServerProof { return nil }

func (r ringRouter) all() []*shard { return r.table.all() }

// sameHashTag reports whether all keys have the same hash tag, and with it the same cluster slot
// and ring shard.
func sameHashTag(counters []algorithm.Counter) bool {
	for i := 1; i < len(counters); i++ {
		if !bytes.Equal(hashTag(counters[i].Key), hashTag(counters[0].Key)) {
			return false
		}
	}
	return true
}

// hashTag returns what stands between the braces of a key.
func hashTag(key []byte) []byte {
	open, end := bytes.IndexByte(key, '{'), bytes.IndexByte(key, '}')
	return key[open+1 : end]
}
