package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// deployment is a way to run Redis, and a kind of client for it.
type deployment struct {
	name    string
	servers []*redistest.Server
	// connect makes a client. Its options are go-redis's defaults, but for what is set here.
	connect func(t testing.TB, o options) redis.UniversalClient
	// slot returns the index of the server that has a key; nil if there is one server.
	slot func(t testing.TB, key string) int
}

// options are those that some tests set; the zero ones are go-redis's defaults.
type options struct {
	dial        func(ctx context.Context, network, addr string) (net.Conn, error)
	readTimeout time.Duration
}

// unknown is a client of a type that the store does not know.
type unknown struct{ redis.UniversalClient }

// deployments starts one server, a ring of two and a cluster, and returns them with each kind of
// client.
func deployments(t *testing.T) []deployment {
	t.Helper()
	one, ring, cluster := redistest.Start(t), redistest.StartRing(t, 2), redistest.StartCluster(t)
	single := func(t testing.TB, o options) redis.UniversalClient {
		return one.Client(t, func(into *redis.Options) { into.Dialer, into.ReadTimeout = o.dial, o.readTimeout })
	}
	clustered := func(t testing.TB, o options) redis.UniversalClient {
		return cluster.Client(t, func(into *redis.ClusterOptions) { into.Dialer, into.ReadTimeout = o.dial, o.readTimeout })
	}
	ringed := func(t testing.TB, o options) redis.UniversalClient {
		return ring.Client(t, func(into *redis.RingOptions) { into.Dialer, into.ReadTimeout = o.dial, o.readTimeout })
	}
	hidden := func(connect func(testing.TB, options) redis.UniversalClient) func(testing.TB, options) redis.UniversalClient {
		return func(t testing.TB, o options) redis.UniversalClient { return unknown{connect(t, o)} }
	}
	return []deployment{
		{"one server", []*redistest.Server{one}, single, nil},
		{"one server, unknown client", []*redistest.Server{one}, hidden(single), nil},
		{"ring", ring.Nodes(), ringed, ringSlot(ring)},
		{"cluster", cluster.Nodes(), clustered, clusterSlot(cluster)},
		{"cluster, unknown client", cluster.Nodes(), hidden(clustered), clusterSlot(cluster)},
	}
}

func ringSlot(ring *redistest.Ring) func(testing.TB, string) int {
	return func(t testing.TB, key string) int {
		t.Helper()
		client := ring.Client(t)
		defer func() { _ = client.Close() }()
		shard, err := client.GetShardClientForKey(key)
		if err != nil {
			t.Fatal(err)
		}
		for i, server := range ring.Nodes() {
			if server.Addr() == shard.Options().Addr {
				return i
			}
		}
		t.Fatalf("%s lies on no server", key)
		return 0
	}
}

func clusterSlot(cluster *redistest.Cluster) func(testing.TB, string) int {
	return func(t testing.TB, key string) int {
		t.Helper()
		client := cluster.Nodes()[0].Client(t)
		defer func() { _ = client.Close() }()
		slot, err := client.ClusterKeySlot(context.Background(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return int(slot) * 3 / 16384
	}
}

// on returns a counter, named after the test, that lies on the given server.
func (d deployment) on(t testing.TB, server int, limit *algorithm.Limit) algorithm.Counter {
	t.Helper()
	for i := range 100 {
		if c := counter(fmt.Sprint(t.Name(), i), limit); d.slot(t, string(c.Key)) == server {
			return c
		}
	}
	t.Fatalf("none of 100 keys lies on server %d of %s", server, d.name)
	return algorithm.Counter{}
}

// proceed continues stopped servers, and returns when they have read everything that a client had
// sent. It closes the client only then, because go-redis's Close waits for a connection that is
// being read from, and removes its deadline.
func (d deployment) proceed(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	for _, server := range d.servers {
		server.Continue()
	}
	_ = client.Close()
	for _, server := range d.servers {
		own := server.Client(t)
		var list string
		var err error
		readAll := func() bool {
			runtime.GC() // go-redis before 9.23 leaves the closing of some connections to the collector
			list, err = own.ClientList(context.Background()).Result()
			return err == nil && strings.Count(list, "\n") == 1
		}
		if !redistest.WaitUntil(readAll, patient) {
			t.Fatalf("the server has not read all connections to their end: %v\n%s", err, list)
		}
	}
}

// wantSoon waits until a condition holds.
func wantSoon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to this: %s", what)
		}
	}
}
