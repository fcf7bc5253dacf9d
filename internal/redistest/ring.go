package redistest

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// Ring is several servers for one test that know nothing of each other. The client divides the keys
// among them.
type Ring struct {
	nodes []*Server
}

// StartRing starts n servers, each as Start does, with these args.
func StartRing(t testing.TB, n int, args ...string) *Ring {
	t.Helper()
	r := &Ring{}
	for range n {
		r.nodes = append(r.nodes, Start(t, args...))
	}
	return r
}

// Nodes returns the servers. The client's name for the first is shard0.
func (r *Ring) Nodes() []*Server { return r.nodes }

// Client returns a client of the ring, which is closed when the test t ends. Its options are
// go-redis's defaults; each change may set others.
func (r *Ring) Client(t testing.TB, change ...func(*redis.RingOptions)) *redis.Ring {
	options := &redis.RingOptions{Addrs: make(map[string]string, len(r.nodes))}
	for i, node := range r.nodes {
		options.Addrs[fmt.Sprintf("shard%d", i)] = node.Addr()
	}
	for _, apply := range change {
		apply(options)
	}
	client := redis.NewRing(options)
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}
