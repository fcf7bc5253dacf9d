package core_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// outage is a deployment of Redis that a test ends.
type outage struct {
	connect func(t *testing.T) redis.UniversalClient
	servers []*redistest.Server
}

func (o *outage) begin() {
	for _, server := range o.servers {
		server.Kill()
	}
}

// onEveryOutage runs a test on each deployment of Redis.
func onEveryOutage(t *testing.T, test func(t *testing.T, o *outage)) {
	t.Run("redis", func(t *testing.T) { test(t, oneServer(t)) })
	t.Run("ring", func(t *testing.T) {
		ring := redistest.StartRing(t, 2)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return ring.Client(t, func(o *redis.RingOptions) { o.DialerRetries = 1 })
		}, ring.Nodes()})
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.StartCluster(t)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return cluster.Client(t, func(o *redis.ClusterOptions) { o.DialerRetries = 1 })
		}, cluster.Nodes()})
	})
}

func oneServer(t *testing.T) *outage {
	server := redistest.Start(t)
	return &outage{func(t *testing.T) redis.UniversalClient {
		return server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })
	}, []*redistest.Server{server}}
}
