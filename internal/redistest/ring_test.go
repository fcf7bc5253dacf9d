package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestRingSpreadsKeys(t *testing.T) {
	ring := redistest.StartRing(t, 3)
	client := ring.Client(t, func(o *redis.RingOptions) {
		o.ReadTimeout = 200 * time.Millisecond
		o.MaxRetries = -1
	})
	keys := keyPerNode(t, client, ring.Nodes())
	ring.Nodes()[0].Stop()
	if err := client.Get(context.Background(), keys[0]).Err(); err == nil {
		t.Error("a stopped shard answered")
	}
	wantValue(t, client, keys[1], "value")
	wantValue(t, client, keys[2], "value")
}
