package redisstore

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// router finds the server that holds a key.
type router interface {
	// node is the server that a script with this key goes to.
	node(ctx context.Context, key string) (node, error)
	// apart says whether keys with different tags may lie on different servers, where one script cannot reach them all.
	apart() bool
}

func newRouter(client redis.UniversalClient, timeout time.Duration) router {
	bound := &boundClients{timeout: timeout}
	switch client := client.(type) {
	case *redis.Client:
		return oneServer{bound.of(client)}
	case *redis.Ring:
		return ring{client, bound}
	case *redis.ClusterClient:
		return &cluster{client: client, bound: bound}
	default:
		return anyClient{heldClient{client}}
	}
}

// oneServer is a single server, or the master that Sentinel names.
type oneServer struct{ only boundClient }

func (o oneServer) node(context.Context, string) (node, error) { return o.only, nil }

func (o oneServer) apart() bool { return false }

// ring is a client-side hash ring of single servers. Keys with one tag lie on one of them.
type ring struct {
	client *redis.Ring
	bound  *boundClients
}

func (r ring) node(_ context.Context, key string) (node, error) {
	shard, err := r.client.GetShardClientForKey(key)
	if err != nil {
		return nil, err
	}
	return r.bound.of(shard), nil
}

func (r ring) apart() bool { return true }

// cluster is a Redis Cluster: the keys with one tag lie in one slot.
type cluster struct {
	client *redis.ClusterClient
	bound  *boundClients
	loads  singleflight.Group
	mu     sync.RWMutex
	known  bool // whether the client knows the slots, so that it can tell a master without asking the servers
}

// node is the master of the key's slot, as far as the client knows. Only the first look at the slots asks the servers, and
// go-redis does not bound that by the context: it is made once for all that wait, and left behind by who cannot wait.
func (c *cluster) node(ctx context.Context, key string) (node, error) {
	if !c.slotsKnown() {
		loaded := c.loads.DoChan("slots", func() (any, error) {
			_, err := c.client.MasterForKey(context.WithoutCancel(ctx), key)
			c.setSlotsKnown(err == nil)
			return nil, err
		})
		select {
		case result := <-loaded:
			if result.Err != nil {
				return nil, result.Err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	master, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		c.setSlotsKnown(false)
		return nil, err
	}
	return clusterNode{c.bound.of(master), c.client}, nil
}

func (c *cluster) apart() bool { return true }

func (c *cluster) slotsKnown() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known
}

func (c *cluster) setSlotsKnown(known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = known
}

// anyClient is a client of a type that we do not know: it may be a cluster.
type anyClient struct{ only heldClient }

func (a anyClient) node(context.Context, string) (node, error) { return a.only, nil }

func (a anyClient) apart() bool { return true }

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
