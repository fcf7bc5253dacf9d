package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// site is a deployment of Redis, over a wire.
type site struct {
	*wire
	nodes    []*redistest.Server // that have counters
	replicas []*redistest.Server
	watchers []string // where the Sentinels listen
	connect  func(t testing.TB, as connection) redis.UniversalClient
	judge    redis.UniversalClient // as an operator, and not over the wire
}

// connection is how a client connects.
type connection struct {
	user, password string
	dial           func(ctx context.Context, network, addr string) (net.Conn, error)
}

// serviceArgs are the arguments of servers that keep their data.
var serviceArgs = []string{
	"--user", "service", "on", ">old", "~*", "&*", "+@all", "--appendonly", "yes", "--busy-reply-threshold", "50",
}

// newSite starts a deployment of this name.
func newSite(t *testing.T, deployment string) *site {
	t.Helper()
	s := new(site)
	switch deployment {
	case "single":
		server := redistest.Start(t, serviceArgs...)
		s.nodes = []*redistest.Server{server}
		s.connect = func(t testing.TB, as connection) redis.UniversalClient {
			return server.Client(t, func(o *redis.Options) { o.Username, o.Password, o.Dialer = as.user, as.password, as.dial })
		}
	case "cluster":
		cluster := redistest.StartCluster(t, serviceArgs...)
		s.nodes = cluster.Nodes()
		s.connect = func(t testing.TB, as connection) redis.UniversalClient {
			return cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password, o.Dialer = as.user, as.password, as.dial })
		}
	case "ring":
		ring := redistest.StartRing(t, 2, serviceArgs...)
		s.nodes = ring.Nodes()
		s.connect = func(t testing.TB, as connection) redis.UniversalClient {
			return ring.Client(t, func(o *redis.RingOptions) { o.Username, o.Password, o.Dialer = as.user, as.password, as.dial })
		}
	case "sentinel":
		sentinel := redistest.StartSentinel(t, serviceArgs...)
		s.nodes, s.replicas = sentinel.Nodes()[:1], sentinel.Nodes()[1:]
		sentinel.Client(t, func(o *redis.FailoverOptions) { s.watchers = o.SentinelAddrs })
		s.failOverAfter(t, time.Hour) // the fault decides when, and not how fast this machine is
		s.connect = func(t testing.TB, as connection) redis.UniversalClient {
			return sentinel.Client(t, func(o *redis.FailoverOptions) { o.Username, o.Password, o.Dialer = as.user, as.password, as.dial })
		}
	default:
		t.Fatalf("there is no deployment %q", deployment)
	}
	s.wire = newWire(t, append(s.replicas, s.nodes...)...)
	s.judge = s.connect(t, connection{})
	return s
}

// clientsOf returns a client's clients of all nodes.
func (s *site) clientsOf(client redis.UniversalClient) (all []*redis.Client) {
	var mu sync.Mutex // each node has a goroutine
	each := func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, node)
		return nil
	}
	switch c := client.(type) {
	case *redis.ClusterClient:
		_ = c.ForEachMaster(context.Background(), each)
	case *redis.Ring:
		_ = c.ForEachShard(context.Background(), each)
	case *redis.Client:
		all = append(all, c)
	}
	return all
}

// subject returns a subject whose counters lie on the first node of a cluster.
func (s *site) subject(t *testing.T, i int) string {
	t.Helper()
	for n := 0; ; n++ {
		subject := fmt.Sprintf("asked-%d.%d", i, n)
		if _, isCluster := s.judge.(*redis.ClusterClient); !isCluster {
			return subject
		}
		slot, err := s.judge.ClusterKeySlot(t.Context(), subject).Result()
		if err != nil {
			t.Fatal(err)
		}
		if int(slot) < slots/len(s.nodes) {
			return subject
		}
	}
}

// slots is the number of slots of a cluster.
const slots = 1 << 14

// do runs a command on all nodes, as the default user, whose rights no test changes.
func (s *site) do(t *testing.T, command ...any) {
	t.Helper()
	for _, node := range s.nodes {
		if err := node.Client(t).Do(t.Context(), command...).Err(); err != nil {
			t.Errorf("%v: %v", command, err)
		}
	}
}

// failOverAfter sets after what time without a master the Sentinels let the replica take its place.
func (s *site) failOverAfter(t *testing.T, span time.Duration) {
	t.Helper()
	for _, addr := range s.watchers {
		client := redis.NewClient(&redis.Options{Addr: addr})
		if err := client.Do(t.Context(), "sentinel", "set", "limits", "down-after-milliseconds", span.Milliseconds()).Err(); err != nil {
			t.Error(err)
		}
		_ = client.Close()
	}
}

// awaitQuiet waits until the servers have executed all that closed processes had sent.
func (s *site) awaitQuiet(t *testing.T) {
	t.Helper()
	for _, node := range s.nodes {
		client := node.Client(t)
		soon(t, "the server has no client of the service any more", func() bool {
			runtime.GC() // go-redis before 9.23 leaves the closing of some connections to the collector
			list, err := client.ClientList(context.Background()).Result()
			return err == nil && !strings.Contains(list, "user=service")
		})
	}
}

// awaitWhole waits until a ring asks all its servers again. Until then it looks on one of them for the
// keys of another, which it takes to be down.
func (s *site) awaitWhole(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	if ring, ok := client.(*redis.Ring); ok {
		soon(t, "the ring has all its servers", func() bool { return ring.Len() == len(s.nodes) })
	}
}

// matrixFault is a fault of the matrix.
type matrixFault struct {
	name string
	// on are the deployments that it is tried on; nil means all.
	on          []string
	inject, end func(t *testing.T, m *matrix)
	hangs       bool // calls wait for their Timeout
	onWire      bool // the service connects over the wire
	forgets     bool // Redis loses what was charged before
}

func (f matrixFault) deployments() []string {
	if f.on != nil {
		return f.on
	}
	return []string{"single", "cluster", "ring", "sentinel"}
}

// all returns a function that does something to each node.
func all(do func(*redistest.Server)) func(*testing.T, *matrix) {
	return func(_ *testing.T, m *matrix) {
		for _, node := range m.site.nodes {
			do(node)
		}
	}
}

// commands returns a function that runs commands on each node.
func commands(commands ...string) func(*testing.T, *matrix) {
	return func(t *testing.T, m *matrix) {
		t.Helper()
		for _, command := range commands {
			var words []any
			for _, word := range strings.Fields(command) {
				words = append(words, word)
			}
			m.site.do(t, words...)
		}
	}
}

// toxics returns a function that disturbs the wire.
func toxics(of ...toxic) func(*testing.T, *matrix) {
	return func(_ *testing.T, m *matrix) { m.site.inject(of...) }
}

func nothing(*testing.T, *matrix) {}

func restore(_ *testing.T, m *matrix) { m.site.restore() }

// notClustered are the deployments in which nobody but the fault decides which server is asked.
var notClustered = []string{"single", "ring"}

var matrixFaults = []matrixFault{
	{name: "none", inject: nothing, end: nothing},
	{name: "slow", inject: toxics(toxic{"latency", "downstream", `"latency": 50`}), end: restore, onWire: true},
	{name: "flushed", on: []string{"single"}, inject: commands("flushall", "script flush"), end: nothing, forgets: true},
	{name: "moved slot", on: []string{"cluster"}, inject: moveSlots, end: nothing},

	{name: "killed", inject: all((*redistest.Server).Kill), end: all((*redistest.Server).Restart)},
	{name: "failover", on: []string{"sentinel"}, inject: func(t *testing.T, m *matrix) {
		if err := m.site.judge.Do(t.Context(), "wait", 1, patience.Milliseconds()).Err(); err != nil {
			t.Error(err)
		}
		m.site.nodes[0].Kill()
		m.site.nodes = m.site.replicas
	}, end: func(t *testing.T, m *matrix) { m.site.failOverAfter(t, time.Second) }},
	{name: "stopped", on: []string{"single", "cluster", "ring"}, inject: all((*redistest.Server).Stop), end: all((*redistest.Server).Continue), hangs: true},
	{name: "late reply", on: notClustered, inject: toxics(toxic{"latency", "downstream", `"latency": 60000`}), end: restore, hangs: true, onWire: true},
	{name: "lost reply", on: notClustered, inject: toxics(toxic{"limit_data", "downstream", `"bytes": 0`}), end: restore, onWire: true},

	{name: "full", inject: commands("config set maxmemory 1"), end: commands("config set maxmemory 0")},
	{name: "wrong password", inject: changePassword, end: commands("acl setuser service resetpass >old")},
	{name: "no right for scripts", inject: commands("acl setuser service -evalsha -eval"), end: commands("acl setuser service +@all")},
	{name: "no right for keys", inject: commands("acl setuser service resetkeys ~others:*"), end: commands("acl setuser service allkeys")},
	{name: "no right to write", inject: commands("acl setuser service -set -zadd -xadd"), end: commands("acl setuser service +@all")},

	{name: "read-only", on: notClustered, inject: commands("replicaof 127.0.0.1 1"), end: commands("replicaof no one")},
	{name: "replica without its master", on: notClustered, inject: commands("config set replica-serve-stale-data no", "replicaof 127.0.0.1 1"), end: commands("replicaof no one")},
	{name: "busy with a script", inject: busy, end: commands("script kill")},

	{name: "foreign value", inject: spoil, end: removeSpoiled},
}

// changePassword changes the service's password, and ends its connections.
func changePassword(t *testing.T, m *matrix) {
	commands("acl setuser service resetpass >new", "client kill user service")(t, m)
	m.site.awaitQuiet(t)
}

// busy makes each node run a script that does not end.
func busy(t *testing.T, m *matrix) {
	for _, node := range m.site.nodes {
		another := node.Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
		go func() {
			another.Do(context.Background(), "eval", "while true do end", 0)
			_ = another.Close()
		}()
		client := node.Client(t)
		soon(t, "the server says that it is busy", func() bool { return redis.HasErrorPrefix(client.Ping(context.Background()).Err(), "BUSY") })
	}
}

// spoil writes lists to the keys of all subjects that are asked about next.
func spoil(t *testing.T, m *matrix) {
	for _, c := range m.cells {
		c.ask(c.subject)
	}
	m.site.eachKey(t, func(client *redis.Client, key string) error {
		_, err := client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Del(t.Context(), key)
			return p.RPush(t.Context(), key, "not a counter").Err()
		})
		return err
	})
}

func removeSpoiled(t *testing.T, m *matrix) {
	m.site.eachKey(t, func(client *redis.Client, key string) error { return client.Del(t.Context(), key).Err() })
}

// eachKey does something to the keys of all subjects that are asked about during a fault.
func (s *site) eachKey(t *testing.T, do func(client *redis.Client, key string) error) {
	t.Helper()
	for _, node := range s.nodes {
		client := node.Client(t)
		keys, err := client.Keys(t.Context(), "*{asked-*").Result()
		for _, key := range keys {
			if !strings.Contains(key, "-before}") {
				err = errors.Join(err, do(client, key))
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// moveSlots moves the slots of all subjects, which lie on the first master, to the second one. The
// clients are not told.
func moveSlots(t *testing.T, m *matrix) {
	at := newMover(t, shards{nodes: m.site.nodes}, "")
	for _, c := range m.cells {
		at.slot = int(m.site.judge.ClusterKeySlot(t.Context(), c.subject).Val())
		at.move(0, 1)
	}
}
