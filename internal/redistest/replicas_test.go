package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// soon waits until is returns true.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not true after waiting: %s", what)
		}
	}
}

func TestReplicaTakesOver(t *testing.T) {
	cluster := redistest.StartCluster(t, "--cluster-node-timeout", "1000")
	cluster.AddReplicas(t)
	keys := keyPerNode(t, cluster.Client(t), cluster.Nodes())
	replica := cluster.Replicas()[1].Client(t, impatient)
	soon(t, "the replica has its master's keys", func() bool { return replica.DBSize(context.Background()).Val() > 0 })
	cluster.Nodes()[1].Kill()
	soon(t, "the replica takes writes", func() bool { return replica.Set(context.Background(), keys[1], "after", 0).Err() == nil })
	client := cluster.Client(t, func(o *redis.ClusterOptions) { o.DialerRetries = 1 })
	soon(t, "the others know", func() bool {
		client.ReloadState(context.Background())
		return client.Get(context.Background(), keys[1]).Val() == "after"
	})
	wantValue(t, client, keys[0], "value")
}

func TestSentinelFailsOver(t *testing.T) {
	sentinel := redistest.StartSentinel(t)
	client := sentinel.Client(t, func(o *redis.FailoverOptions) { o.MaxRetries = -1 })
	mustSet(t, client, "key", "before")
	nodes := sentinel.Nodes()
	old, replica := nodes[0].Client(t), nodes[1].Client(t)
	if at := sentinel.Master(t); at != nodes[0].Addr() {
		t.Fatalf("the master is %s, want %s", at, nodes[0].Addr())
	}
	begun := time.Now()
	sentinel.FailOver(t)
	soon(t, "the replica takes writes", func() bool {
		if time.Since(begun) > 6*time.Second && sentinel.Master(t) == nodes[0].Addr() {
			begun = time.Now()
			// On a busy machine, Sentinels abandon a failover that takes them longer than 5 s.
			sentinel.FailOver(t)
		}
		_ = client.Set(context.Background(), "key", "planned", 0).Err()
		return sentinel.Master(t) == nodes[1].Addr() && replica.Get(context.Background(), "key").Val() == "planned"
	})
	soon(t, "the old master follows", func() bool { return old.Get(context.Background(), "key").Val() == "planned" })
	nodes[1].Kill()
	soon(t, "the first master takes writes again", func() bool {
		return sentinel.Master(t) == nodes[0].Addr() && client.Set(context.Background(), "key", "after", 0).Err() == nil
	})
	wantValue(t, old, "key", "after")
}
