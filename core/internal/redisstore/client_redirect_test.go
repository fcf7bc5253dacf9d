package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// move is a slot on its way from the first server of a cluster to the second.
type move struct {
	t        *testing.T
	cluster  *redistest.Cluster
	from, to *redis.Client
	slot     int64
	toID     string
}

// moves prepares the move of a key's slot.
func moves(t *testing.T, cluster *redistest.Cluster, key string) *move {
	t.Helper()
	nodes, ctx := cluster.Nodes(), context.Background()
	m := &move{t: t, cluster: cluster, from: nodes[0].Client(t), to: nodes[1].Client(t)}
	m.slot = m.from.ClusterKeySlot(ctx, key).Val()
	m.toID = m.to.ClusterMyID(ctx).Val()
	return m
}

// begin tells both servers that the slot is moving.
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
	cluster := redistest.StartCluster(t)
	for name, client := range map[string]redis.UniversalClient{
		"cluster": cluster.Client(t), "unknown client": unknown{cluster.Client(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("step by step", func(t *testing.T) { movesInUse(t, cluster, newStore(t, client, patient)) })
			t.Run("at once", func(t *testing.T) { hasMoved(t, cluster, newStore(t, client, patient)) })
			t.Run("with keys on both sides", func(t *testing.T) { splitSlot(t, cluster, newStore(t, client, patient)) })
			t.Run("reset on both sides", func(t *testing.T) { resetSplitSlot(t, cluster, newStore(t, client, patient)) })
		})
	}
	t.Run("to a server that the client does not know", func(t *testing.T) {
		movesInUse(t, cluster, newStore(t, cluster.Client(t, frozen(t, cluster, 0)), patient))
	})
	t.Run("to a master that hangs", func(t *testing.T) { movesToUnhealthyMaster(t, cluster) })
}

// frozen keeps a client's slots as they are now, however often it loads them.
func frozen(t *testing.T, cluster *redistest.Cluster, known ...int) func(*redis.ClusterOptions) {
	t.Helper()
	//lint:ignore SA1019 CLUSTER SHARDS, which takes its place, needs Redis 7.0
	all, err := cluster.Client(t).ClusterSlots(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	slots := slices.DeleteFunc(all, func(s redis.ClusterSlot) bool {
		return !slices.ContainsFunc(known, func(i int) bool { return cluster.Addrs()[i] == s.Nodes[0].Addr })
	})
	return func(o *redis.ClusterOptions) {
		o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }
	}
}

// movesToUnhealthyMaster checks that only the calls for the moved slot fail. The others, which
// share pipelines with them, are answered by the healthy master.
func movesToUnhealthyMaster(t *testing.T, cluster *redistest.Cluster) {
	d := deployment{name: "cluster", slot: clusterSlot(cluster)}
	s := newStore(t, cluster.Client(t, frozen(t, cluster, 0, 1)), 1500*time.Millisecond)
	moved, limit := subjectOn(t, cluster), daily(t, 10_000)
	var well []algorithm.Counter
	for i := 0; len(well) < 32; i++ {
		if c := counter(fmt.Sprint("well", i), limit); d.slot(t, string(c.Key)) == 0 {
			well = append(well, c)
		}
	}
	together(len(well), func(i int) { s.mustTake(t, well[i]) })
	m := moves(t, cluster, string(moved.Key))
	m.begin()
	m.end()
	s.mustTake(t, moved)
	sick := cluster.Nodes()[1]
	sick.Stop()
	defer sick.Continue()
	together(2*len(well), func(i int) {
		for range 20 {
			if i%8 == 0 {
				if v := s.take(context.Background(), moved)[0]; v.Err == nil || v.Ended != nil {
					t.Errorf("%+v, want a failure of the store", v)
				}
			} else if v := s.take(context.Background(), well[i/2])[0]; !passes(v) {
				t.Errorf("another slot's call: %+v", v)
			}
		}
	})
	for _, shard := range s.Shards() {
		if isSick := shard.Addr == sick.Addr(); isSick == (shard.Breaker == "closed") {
			t.Errorf("the breaker of %s is %s", shard.Addr, shard.Breaker)
		}
	}
}

// A master that has become a replica admits that only to clients that read from replicas, too. To
// others it names the new master. Calls follow it there all the same.
func TestAMasterThatBecomesAReplica(t *testing.T) {
	cluster := redistest.StartCluster(t)
	cluster.AddReplicas(t)
	d := deployment{name: "cluster", slot: clusterSlot(cluster)}
	for master, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("ReadOnly %t", readOnly), func(t *testing.T) {
			client := cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadOnly = readOnly })
			s, c := newStore(t, client, patient), d.on(t, master, daily(t, 100))
			together(8, func(int) { s.mustTake(t, c) })
			ctx, old, replica := context.Background(), cluster.Nodes()[master].Client(t), cluster.Replicas()[master].Client(t)
			if err := replica.Do(ctx, "cluster", "failover", "takeover").Err(); err != nil {
				t.Fatal(err)
			}
			wantSoon(t, "the master is a replica", func() bool {
				info, _ := old.Info(ctx, "replication").Result()
				return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
			})
			together(32, func(int) { s.mustTake(t, c) })
			if left := s.left(t, c); left < 60 { // more, where the replica had not heard of a call yet
				t.Errorf("%d left after 40 calls", left)
			}
		})
	}
}

// subjectOn returns a counter that lies on the first server of the cluster.
func subjectOn(t *testing.T, cluster *redistest.Cluster) algorithm.Counter {
	t.Helper()
	return deployment{name: "cluster", slot: clusterSlot(cluster)}.on(t, 0, daily(t, 100))
}

// movesInUse checks that no call fails during a move, and that each is charged once.
func movesInUse(t *testing.T, cluster *redistest.Cluster, s store) {
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

// hasMoved checks the same if the client learns of the move only afterwards.
func hasMoved(t *testing.T, cluster *redistest.Cluster, s store) {
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
	if _, err := s.Reset(context.Background(), c.Key); err != nil || s.left(t, c) != 100 {
		t.Errorf("Reset: %v", err)
	}
}

// splitSlot checks that a call for two counters on different sides of a moving slot waits until it
// can be decided, if it has the time, and charges neither before; also if there are many.
func splitSlot(t *testing.T, cluster *redistest.Cluster, s store) {
	one := subjectOn(t, cluster)
	other := one
	other.Key = append(append([]byte(nil), one.Key...), ":other"...)
	s.mustTake(t, one, other)
	m := moves(t, cluster, string(one.Key))
	m.begin()
	m.carry(other.Key)
	hurried := newStore(t, cluster.Client(t), timeout)
	for _, v := range hurried.take(context.Background(), one, other) {
		if v.Ended != nil || failure.ClassOf(v.Err) != failure.SlotMoving {
			t.Errorf("%+v, want that the slot is moving", v)
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

// resetSplitSlot checks that counters on both sides of a moving slot are reset while it moves.
func resetSplitSlot(t *testing.T, cluster *redistest.Cluster, s store) {
	one := subjectOn(t, cluster)
	other := one
	other.Key = append(append([]byte(nil), one.Key...), ":other"...)
	s.mustTake(t, one, other)
	m := moves(t, cluster, string(one.Key))
	m.begin()
	m.carry(other.Key)
	for _, want := range []bool{true, false} {
		if changed, err := s.Reset(context.Background(), one.Key, other.Key); changed != want || err != nil {
			t.Errorf("Reset: %v, %v; want %v", changed, err, want)
		}
	}
	m.end()
	if s.left(t, one) != 100 || s.left(t, other) != 100 {
		t.Errorf("%d and %d left after a Reset", s.left(t, one), s.left(t, other))
	}
}
