package marks_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// In a Ring, marks have one server. While it is down, tables hold, acts fail, and nothing is written to
// another server.
func TestARingWhoseServerIsDown(t *testing.T) {
	ring := redistest.StartRing(t, 3)
	client := ring.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = 50 * time.Millisecond })
	store := redisstore.New(client, patient)
	bounded.Cleanup(t, store.Close)
	p := &process{fleet: &fleet{T: t}}
	p.Set = marks.NewSet(marks.Options{Redis: store, Prefix: "test", Now: func() int64 { return time.Now().UnixMicro() }, Calls: noCalls, Log: p, Most: 100})
	p.act("a", marks.Blocked, 0)
	var its *redistest.Server
	for _, node := range ring.Nodes() {
		if node.Client(t).DBSize(background).Val() > 0 {
			its = node
		}
	}
	its.Kill()
	if !redistest.WaitUntil(func() bool { return len(client.GetShardClients()) == 2 }, patient) {
		t.Fatal("the Ring still has three servers")
	}
	if err := p.tryToAct("b", marks.Blocked, 0); err == nil {
		t.Error("the server is down, and no error")
	}
	p.want("a", marks.Blocked)
	for _, node := range ring.Nodes() {
		if node != its && node.Client(t).DBSize(background).Val() > 0 {
			t.Error("another server has marks")
		}
	}
}
