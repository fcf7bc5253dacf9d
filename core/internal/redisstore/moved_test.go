package redisstore_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/limittest"
)

// move is a slot on its way from the first server of a cluster to the second.
type move struct {
	t        *testing.T
	cluster  *limittest.Cluster
	from, to *redis.Client
	slot     int64
	toID     string
}

// moves prepares to move the slot of a key.
func moves(t *testing.T, cluster *limittest.Cluster, key string) *move {
	t.Helper()
	nodes, ctx := cluster.Nodes(), context.Background()
	m := &move{t: t, cluster: cluster, from: nodes[0].Client(t), to: nodes[1].Client(t)}
	m.slot = m.from.ClusterKeySlot(ctx, key).Val()
	m.toID = m.to.ClusterMyID(ctx).Val()
	return m
}

// begin has both servers know that the slot is moving.
func (m *move) begin() {
	m.t.Helper()
	ctx := context.Background()
	m.must(m.to.Do(ctx, "cluster", "setslot", m.slot, "importing", m.from.ClusterMyID(ctx).Val()).Err())
	m.must(m.from.Do(ctx, "cluster", "setslot", m.slot, "migrating", m.toID).Err())
}

// carry moves one key.
func (m *move) carry(key []byte) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.to.Options().Addr)
	m.must(m.from.Migrate(context.Background(), host, port, string(key), 0, patient).Err())
}

// end gives the slot to the other server.
func (m *move) end() {
	m.t.Helper()
	for _, server := range []*redis.Client{m.to, m.from} {
		m.must(server.Do(context.Background(), "cluster", "setslot", m.slot, "node", m.toID).Err())
	}
}

func (m *move) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("the slot cannot be moved: %v", err)
	}
}

// A slot may move while it is in use, behind the client's back.
func TestSlotsThatMove(t *testing.T) {
	cluster := limittest.StartCluster(t)
	for name, client := range map[string]redis.UniversalClient{
		"cluster": cluster.Client(t), "unknown client": unknown{cluster.Client(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("step by step", func(t *testing.T) { movesInUse(t, cluster, newStore(t, client, patient)) })
			t.Run("at once", func(t *testing.T) { hasMoved(t, cluster, newStore(t, client, patient)) })
			t.Run("apart from each other", func(t *testing.T) { tornApart(t, cluster, newStore(t, client, patient)) })
		})
	}
}

// subjectOn is a counter that lies on the first server of the cluster.
func subjectOn(t *testing.T, cluster *limittest.Cluster) algorithm.Counter {
	t.Helper()
	return deployment{name: "cluster", slot: clusterSlot(cluster)}.on(t, 0, daily(t, 100))
}

// No call fails on the way, and each is charged once.
func movesInUse(t *testing.T, cluster *limittest.Cluster, s store) {
	c := subjectOn(t, cluster)
	m := moves(t, cluster, string(c.Key))
	for i, step := range []func(){func() {}, m.begin, func() { m.carry(c.Key) }, m.end, func() {}} {
		step()
		for range 3 {
			s.mustTake(t, c)
		}
		if left, want := s.left(t, c), int64(97-3*i); left != want {
			t.Fatalf("step %d: %d left, want %d", i, left, want)
		}
	}
}

// The same when the client hears of it only afterwards.
func hasMoved(t *testing.T, cluster *limittest.Cluster, s store) {
	c := subjectOn(t, cluster)
	s.mustTake(t, c)
	m := moves(t, cluster, string(c.Key))
	m.begin()
	m.carry(c.Key)
	m.end()
	together(16, func(int) { s.mustTake(t, c) })
	if left := s.left(t, c); left != 83 {
		t.Errorf("%d charged by 17 calls", 100-left)
	}
	if err := s.Reset(context.Background(), c.Key); err != nil || s.left(t, c) != 100 {
		t.Errorf("Reset: %v", err)
	}
}

// While a slot moves, a call for two of its counters that lie on different sides cannot be decided. It waits until it can, as long as
// it may, and charges neither before; so do many at once.
func tornApart(t *testing.T, cluster *limittest.Cluster, s store) {
	one := subjectOn(t, cluster)
	other := one
	other.Key = append(append([]byte(nil), one.Key...), ":other"...)
	s.mustTake(t, one, other)
	m := moves(t, cluster, string(one.Key))
	m.begin()
	m.carry(other.Key)
	hurried := newStore(t, cluster.Client(t), timeout)
	for _, v := range hurried.take(context.Background(), one, other) {
		if v.Err == nil || v.Ended != nil {
			t.Errorf("%+v, want a failure of the store", v)
		}
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { together(32, func(int) { s.mustTake(t, one, other) }) })
	m.carry(one.Key)
	m.end()
	waiting.Wait()
	if s.left(t, one) != 67 || s.left(t, other) != 67 {
		t.Errorf("%d and %d left, want 67 of both", s.left(t, one), s.left(t, other))
	}
}
