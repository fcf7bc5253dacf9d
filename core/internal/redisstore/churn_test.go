package redisstore_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Callers choose their deadlines: many that are too short for an answer must not cost a connection each.
func TestShortDeadlinesKeepTheConnections(t *testing.T) {
	server, client := startOne(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return slow{conn}, err
		}
	})
	s := newStore(t, client, patient)
	c := counter(t.Name(), daily(t, 10_000))
	s.mustTake(t, c)
	before := connectionsMade(t, server)
	for range 200 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		s.take(ctx, c)
		cancel()
	}
	if made := connectionsMade(t, server) - before; made > 50 {
		t.Errorf("%d connections were made for 200 impatient calls", made)
	}
}

// Nor do they make a cluster's client look for other masters: they say nothing about the one that
// was asked.
func TestShortDeadlinesLoadNoSlots(t *testing.T) {
	cluster := redistest.StartCluster(t)
	var loads atomic.Int32
	//lint:ignore SA1019 CLUSTER SHARDS, which takes its place, needs Redis 7.0
	slots, err := cluster.Client(t).ClusterSlots(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, cluster.Client(t, func(o *redis.ClusterOptions) {
		o.ClusterStateReloadInterval = time.Hour
		o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
			loads.Add(1)
			return slots, nil
		}
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return slow{conn}, err
		}
	}), patient)
	c := counter(t.Name(), daily(t, 10_000))
	s.mustTake(t, c)
	before := loads.Load()
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		s.take(ctx, c)
		cancel()
	}
	s.mustTake(t, c)
	if n := loads.Load() - before; n != 0 {
		t.Errorf("the slots were loaded %d times for impatient calls", n)
	}
}

// slow is a connection on which every answer is on its way for a while.
type slow struct{ net.Conn }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(3 * time.Millisecond)
	return s.Conn.Read(p)
}

// connectionsMade is how many clients the server has ever had.
func connectionsMade(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	info, err := server.Client(t).InfoMap(context.Background(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n, err = strconv.Atoi(info["Stats"]["total_connections_received"])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A server that stalls leaves no connection behind that nobody closes.
func TestStallsLeakNoConnections(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	s := store{redisstore.New(client, timeout)}
	c := counter(t.Name(), daily(t, 10_000))
	var callers sync.WaitGroup
	for range 3 {
		for range 64 {
			callers.Go(func() { s.take(context.Background(), c) })
		}
		callers.Wait()
		server.Stop()
		for range 64 {
			callers.Go(func() { s.take(context.Background(), c) })
		}
		callers.Wait()
		server.Continue()
	}
	s.Close()
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	watcher := server.Client(t)
	wantSoon(t, "the server to have one client, the one that asks", func() bool {
		list, err := watcher.ClientList(context.Background()).Result()
		return err == nil && strings.Count(list, "\n") == 1
	})
}

// Closing while charges are being given back waits for these, or lets the callers do it themselves, and never panics.
func TestCloseDuringGiveBacks(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	s := newStore(t, ring.Client(t), patient)
	used, free := counter("used "+t.Name(), daily(t, 1)), counter("free "+t.Name(), daily(t, 10_000))
	s.mustTake(t, used)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 30 {
				s.take(context.Background(), used, free)
			}
		})
		callers.Go(s.Close)
	}
	callers.Wait()
	s.Close()
	if left := s.left(t, free); left != 10_000 {
		t.Errorf("%d are left of 10,000 that nobody was let use", left)
	}
}
