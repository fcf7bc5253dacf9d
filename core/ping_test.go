package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestPing(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		if err := limiter.Ping(background); err != nil {
			t.Error(err)
		}
		gone, leave := context.WithCancel(background)
		leave()
		if err := limiter.Ping(gone); err != context.Canceled {
			t.Errorf("%v, want the caller's error", err)
		}
	})
}

// Ping says why calls are not counted, and what to change, also if only one of several servers has
// no room, or it answers everything but charges.
func TestPingFails(t *testing.T) {
	fill := func(server *redistest.Server) {
		if err := server.Client(t).ConfigSet(background, "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
	}
	full, stopped := redistest.Start(t), redistest.Start(t)
	cluster, ring := redistest.StartCluster(t), redistest.StartRing(t, 2)
	fill(full)
	fill(cluster.Nodes()[2])
	fill(ring.Nodes()[1])
	stopped.Stop()
	open := func(addr string) redis.UniversalClient {
		client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1})
		bounded.Cleanup(t, func() { _ = client.Close() })
		return client
	}
	for name, test := range map[string]struct {
		client  redis.UniversalClient
		timeout time.Duration
		classes []core.StoreErrorClass
		change  string
	}{
		"full":                 {full.Client(t), patient, []core.StoreErrorClass{core.StoreRefused}, "give Redis more maxmemory"},
		"one of a cluster":     {cluster.Client(t), patient, []core.StoreErrorClass{core.StoreRefused}, "give Redis more maxmemory"},
		"one of a ring":        {ring.Client(t), patient, []core.StoreErrorClass{core.StoreRefused}, "give Redis more maxmemory"},
		"nobody listens":       {open("127.0.0.1:1"), patient, []core.StoreErrorClass{core.StoreUnreachable}, "start Redis"},
		"a URL for an address": {open("redis://localhost:6379/0"), patient, []core.StoreErrorClass{core.StoreUnreachable}, "redis.ParseURL"},
		"a URL without a port": {open("redis://localhost"), patient, []core.StoreErrorClass{core.StoreUnreachable}, "redis.ParseURL"},
		"stopped":              {stopped.Client(t), 100 * time.Millisecond, []core.StoreErrorClass{core.StoreTimeout, core.StoreUnreachable}, "see whether Redis"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newLimiter(t, core.Options{Redis: test.client, Timeout: test.timeout}).Ping(background)
			var failed *core.StoreError
			if !errors.As(err, &failed) || !slices.Contains(test.classes, failed.Class) ||
				!strings.Contains(err.Error(), string(failed.Class)) || !strings.Contains(err.Error(), test.change) {
				t.Errorf("%v, want a class of %v, and the advice to %s", err, test.classes, test.change)
			}
		})
	}
}
