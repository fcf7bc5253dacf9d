package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// AddReplicas gives each master a replica, which takes the master's place when the other masters
// have not reached the master for their node timeout plus a second or two. It returns when all
// replicas have caught up and the whole cluster knows them, which takes about three seconds. Start
// the cluster with "--cluster-node-timeout", "1000", unless the test can wait for a minute.
func (c *Cluster) AddReplicas(t testing.TB) {
	t.Helper()
	for range c.nodes {
		c.replicas = append(c.replicas, Start(t, c.args...))
	}
	for i, replica := range c.replicas {
		if !replica.replicate(c.nodes[i]) {
			t.Fatalf("redistest: a server cannot become the replica of master %d", i)
		}
	}
	for _, server := range append(c.replicas, c.nodes...) {
		if !server.awaitReplicas(len(c.replicas)) {
			t.Fatalf("redistest: the server on %s does not see all replicas", server.Addr())
		}
	}
}

// Replicas returns the replicas of the masters, in the masters' order; none before AddReplicas.
// After a failover only the cluster knows which server is the master of which slots.
func (c *Cluster) Replicas() []*Server { return c.replicas }

// replicate makes a server of a cluster the replica of a master, and reports whether it caught up.
func (r *Server) replicate(master *Server) bool {
	ctx, client, of := context.Background(), r.probe(), master.probe()
	defer func() { _, _ = client.Close(), of.Close() }()
	id, err := of.ClusterMyID(ctx).Result()
	if err != nil || client.ClusterMeet(ctx, loopback, strconv.Itoa(master.port)).Err() != nil {
		return false
	}
	return WaitUntil(func() bool { return client.ClusterReplicate(ctx, id).Err() == nil }, patience) && inStep(client)
}

// inStep waits until a replica has everything that its master has, and reports whether it does.
func inStep(replica *redis.Client) bool {
	return WaitUntil(func() bool {
		info, _ := replica.Info(context.Background(), "replication").Result()
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	}, patience)
}

// awaitReplicas waits until the server knows of n replicas in its cluster, and reports whether it
// does.
func (r *Server) awaitReplicas(n int) bool {
	ctx, client := context.Background(), r.probe()
	defer func() { _ = client.Close() }()
	return WaitUntil(func() bool {
		nodes, _ := client.ClusterNodes(ctx).Result()
		known := 0
		for line := range strings.Lines(nodes) {
			if strings.Contains(line, "slave ") && strings.Contains(line, " connected") {
				known++
			}
		}
		return known == n
	}, patience)
}
