package redistest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// keyPerNode writes keys through the client until each of the nodes holds exactly one of those
// returned, in the nodes' order.
func keyPerNode(t *testing.T, client redis.Cmdable, nodes []*redistest.Server) []string {
	t.Helper()
	keys := make([]string, len(nodes))
	for i := range 100 {
		key := fmt.Sprintf("key-%d", i)
		mustSet(t, client, key, "value")
		for n, node := range nodes {
			if found, err := node.Client(t).Keys(context.Background(), key).Result(); err == nil && len(found) == 1 {
				keys[n] = key
			}
		}
		if allSet(keys) {
			return keys
		}
	}
	t.Fatalf("100 keys reached only some of %d nodes: %q", len(nodes), keys)
	return nil
}

func allSet(keys []string) bool {
	for _, key := range keys {
		if key == "" {
			return false
		}
	}
	return true
}

func TestClusterSpreadsKeys(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	for _, key := range keyPerNode(t, client, cluster.Nodes()) {
		wantValue(t, client, key, "value")
	}
	for i, addr := range cluster.Addrs() {
		if addr != cluster.Nodes()[i].Addr() {
			t.Errorf("address %d is %s, its node listens on %s", i, addr, cluster.Nodes()[i].Addr())
		}
	}
}

func TestClusterLivesWithAMasterStoppedAndRestarted(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t, func(o *redis.ClusterOptions) {
		o.ReadTimeout = 200 * time.Millisecond
		o.MaxRedirects = -1
	})
	keys := keyPerNode(t, client, cluster.Nodes())
	sick := cluster.Nodes()[1]

	sick.Stop()
	if err := client.Get(context.Background(), keys[1]).Err(); err == nil {
		t.Error("a stopped master answered")
	}
	wantValue(t, client, keys[0], "value")
	wantValue(t, client, keys[2], "value")
	sick.Continue()
	wantValue(t, client, keys[1], "value")

	sick.Restart()
	deadline := time.Now().Add(10 * time.Second)
	for client.Set(context.Background(), keys[1], "again", 0).Err() != nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	wantValue(t, client, keys[1], "again")
	wantValue(t, client, keys[0], "value")
}
