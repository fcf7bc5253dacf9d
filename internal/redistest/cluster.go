package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a Redis cluster for one test: three masters, which divide the slots evenly, without
// replicas until AddReplicas.
//
// If a master is down, the others continue to serve their slots (cluster-require-full-coverage is
// off), as in a cluster whose operators prefer partial service to none. A master that was stopped
// for less than a minute only seems slow to the others. With Redis's own node timeout of 15
// seconds, a master would answer CLUSTERDOWN if the two others got no processor for that long. A
// master that was restarted keeps its slots, and takes calls again about two seconds later.
type Cluster struct {
	nodes    []*Server
	replicas []*Server
	args     []string
}

// StartCluster starts a cluster and returns when all masters agree that it is complete, which takes
// about two seconds. Each is a Server as Start returns, with these args.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{args: append([]string{
		"--cluster-enabled", "yes",
		"--cluster-announce-ip", loopback,
		"--cluster-require-full-coverage", "no",
		"--cluster-node-timeout", "60000",
		"--repl-diskless-sync-delay", "0", // otherwise a replica waits five seconds
		"--repl-ping-replica-period", "1", // and a cluster lists it with its first ping, after ten
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

// join gives master i its share of the slots and makes it meet the masters before it. Each master
// starts with a different epoch, so the masters do not have to resolve a conflict first.
func (c *Cluster) join(i int) error {
	client := c.nodes[i].probe()
	defer func() { _ = client.Close() }()
	ctx := context.Background()
	err := errors.Join(
		client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
		client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
	for _, other := range c.nodes[:i] {
		err = errors.Join(err, client.ClusterMeet(ctx, loopback, strconv.Itoa(other.port)).Err())
	}
	return err
}

// awaitCluster waits until the node takes calls and knows the owner of every slot, and reports
// whether it does.
func (r *Server) awaitCluster() bool {
	ctx, client := context.Background(), r.probe()
	defer func() { _ = client.Close() }()
	return WaitUntil(func() bool {
		info, _ := client.ClusterInfo(ctx).Result()
		owners, _ := client.Do(ctx, "cluster", "slots").Slice() // not CLUSTER SHARDS, which Redis 6.2 does not know
		return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384") && len(owners) == masters
	}, patience)
}

// probe returns a client that never retries. The caller closes it.
func (r *Server) probe() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.Addr(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, MaxRetries: -1})
}

// Addrs returns where the masters listen, in the order of their slots.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// Nodes returns the masters, in the order of their slots.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Client returns a client of the cluster, which is closed when the test t ends. Its options are
// go-redis's defaults; each change may set others.
func (c *Cluster) Client(t testing.TB, change ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	options := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, apply := range change {
		apply(options)
	}
	client := redis.NewClusterClient(options)
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}

// Moving returns a subject whose slot is moving: its old server redirects calls to the new one.
func (c *Cluster) Moving(t testing.TB) (subject string) {
	t.Helper()
	from, to := c.Nodes()[0].Client(t), c.Nodes()[1].Client(t)
	for i := range 1000 {
		subject = fmt.Sprint("moving", i)
		slot := from.ClusterKeySlot(t.Context(), subject).Val()
		if slot >= 16384/3 {
			continue
		}
		err := errors.Join(
			to.Do(t.Context(), "cluster", "setslot", slot, "importing", from.ClusterMyID(t.Context()).Val()).Err(),
			from.Do(t.Context(), "cluster", "setslot", slot, "migrating", to.ClusterMyID(t.Context()).Val()).Err())
		if err != nil {
			t.Fatal(err)
		}
		return subject
	}
	t.Fatal("no subject lies on the first server")
	return ""
}
