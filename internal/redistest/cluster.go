package redistest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a real Redis cluster of this test alone: three masters, which divide the slots evenly, without replicas until
// AddReplicas.
//
// It goes on serving the slots of the masters that are left when one is down (cluster-require-full-coverage is off), as a cluster
// does whose operators prefer a part to nothing. A master that was stopped for less than a minute is merely slow in the others'
// eyes. With Redis's own node timeout, 15 seconds, a master refuses calls with CLUSTERDOWN once the two others got no processor for
// so long. One that was restarted keeps its slots, and takes calls again about two seconds later.
type Cluster struct {
	nodes    []*Server
	replicas []*Server
	args     []string
}

// StartCluster starts a cluster and returns when all masters agree that it is complete, which takes about two seconds. As with
// Start, the test fails when redis-server is not installed, the cluster is gone when the test ends, and the args come last on
// the command line of each server.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{args: append([]string{
		"--cluster-enabled", "yes",
		"--cluster-announce-ip", loopback,
		"--cluster-require-full-coverage", "no",
		"--cluster-node-timeout", "60000",
		"--repl-diskless-sync-delay", "0", // what a replica waits for, five seconds unless set
	}, args...)}
	for range masters {
		c.nodes = append(c.nodes, Start(t, c.args...))
	}
	for i := range c.nodes {
		if err := c.join(i); err != nil {
			t.Fatalf("redistest: master %d cannot join the cluster: %v", i, err)
		}
	}
	for i, node := range c.nodes {
		if !node.awaitCluster() {
			t.Fatalf("redistest: master %d does not see the whole cluster", i)
		}
	}
	return c
}

// join gives master i its share of the slots and has it meet the masters before it. The epochs differ from the start, so that
// the masters have no conflict to settle first.
func (c *Cluster) join(i int) error {
	ctx, client := context.Background(), c.nodes[i].probe()
	defer func() { _ = client.Close() }()
	err := errors.Join(
		client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
		client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
	for _, other := range c.nodes[:i] {
		err = errors.Join(err, client.ClusterMeet(ctx, loopback, strconv.Itoa(other.port)).Err())
	}
	return err
}

// awaitCluster waits until the node takes calls and knows the owner of every slot, and tells whether it does.
func (r *Server) awaitCluster() bool {
	ctx, client := context.Background(), r.probe()
	defer func() { _ = client.Close() }()
	return WaitUntil(func() bool {
		info, _ := client.ClusterInfo(ctx).Result()
		owners, _ := client.Do(ctx, "cluster", "slots").Slice() // not CLUSTER SHARDS, which Redis 6.2 does not know
		return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384") && len(owners) == masters
	}, patience)
}

// probe returns a client that gives up early and tries nothing twice. The caller closes it.
func (r *Server) probe() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.Addr(), ReadTimeout: time.Second, MaxRetries: -1})
}

// Addrs are where the masters listen, in the order of their slots.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// Nodes are the masters, in the order of their slots, to be broken one by one.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Client returns a client of the cluster, closed when the test t ends. Its options are go-redis's own defaults; each change may
// set others.
func (c *Cluster) Client(t testing.TB, change ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	options := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, apply := range change {
		apply(options)
	}
	client := redis.NewClusterClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
