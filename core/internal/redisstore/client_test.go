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

// Callers choose their deadlines. Many that are too short for an answer must not cost a connection
// each.
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

// Deadlines that are too short do not make a cluster's client load the slots, because they say
// nothing about the master that was asked.
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

// slow is a connection whose answers take a while.
type slow struct{ net.Conn }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(3 * time.Millisecond)
	return s.Conn.Read(p)
}

// connectionsMade returns how many connections the server has ever accepted.
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

// A server that stalls leaves no connection open for ever.
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

// If a server refuses a connection, its reason reaches every call that needed one, also those in a
// pipeline.
func TestConnectionsRefused(t *testing.T) {
	for name, refused := range map[string]struct {
		change func(*redis.Options)
		says   string
	}{
		"password": {func(o *redis.Options) { o.Password = "wrong" }, "WRONGPASS"},
		"database": {func(o *redis.Options) { o.Password, o.DB = "secret", 16 }, "DB index is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			client := redistest.Start(t, "--requirepass", "secret").Client(t, refused.change)
			s, c := newStore(t, client, patient), counter(t.Name(), daily(t, 1000))
			together(callers, func(int) {
				for range 10 {
					if v := s.take(context.Background(), c)[0]; v.Err == nil || !strings.Contains(v.Err.Error(), refused.says) {
						t.Errorf("%+v, want an error that says %s", v, refused.says)
					}
				}
			})
		})
	}
}

// An error of Redis is cut off where it becomes a store failure, however long it is.
func TestErrorsOfAServerAreCutOff(t *testing.T) {
	server, p := redistest.Start(t), startProxy(t)
	client := server.Client(t, func(o *redis.Options) { o.Dialer = p.dial })
	s := newStore(t, client, patient)
	c := counter("subject", daily(t, 100))
	s.mustTake(t, c)
	for _, reply := range []string{"-ERR " + strings.Repeat("ä", 1<<19) + "\r\n", "!!" + strings.Repeat("x", 1<<20) + "\r\n"} {
		p.fault.Store(&fault{name: "long", reply: reply})
		err := firstError(s.take(context.Background(), c))
		if err == nil || len(err.Error()) > 1100 || !strings.Contains(err.Error(), "bytes)") {
			t.Errorf("%.200v", err)
		}
	}
}
