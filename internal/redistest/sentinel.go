package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// masterName is the Sentinels' name for the master.
const masterName = "limits"

// Sentinel is a master with one replica, watched by three Sentinels, for one test. If two Sentinels
// have not reached the master for a second, the replica takes its place. That takes three to six
// seconds in all. When the old master is back, it becomes the replica.
type Sentinel struct {
	nodes    []*Server
	watchers []*Server
}

// StartSentinel starts all of them and returns when the Sentinels know each other and the replica.
// Each is a Server as Start returns, the master and the replica with these args.
func StartSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...) // a replica waits that long, five seconds by default
	s := &Sentinel{nodes: []*Server{Start(t, args...), Start(t, args...)}}
	if !s.nodes[1].follow(s.nodes[0]) {
		t.Fatal("redistest: a server cannot become the replica of another")
	}
	for range 3 {
		s.watchers = append(s.watchers, startWatcher(t, s.nodes[0]))
	}
	for _, watcher := range s.watchers {
		if !watcher.awaitWatch() {
			t.Fatalf("redistest: the Sentinel on %s does not know the replica and the other Sentinels", watcher.Addr())
		}
	}
	for _, watcher := range s.watchers {
		watcher.pace(10_000, 2000) // as usual: Sentinels undo the failover of another if they hear of it later than four announcements
	}
	return s
}

// follow makes a server the replica of another, and reports whether it caught up.
func (r *Server) follow(master *Server) bool {
	client := r.probe()
	defer func() { _ = client.Close() }()
	return client.ReplicaOf(context.Background(), loopback, fmt.Sprint(master.port)).Err() == nil && inStep(client)
}

// startWatcher starts a Sentinel.
func startWatcher(t testing.TB, master *Server) *Server {
	t.Helper()
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]d 2\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 5000\n",
		masterName, loopback, master.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newServer(t, []string{"--sentinel"})
	w.config = config
	w.start(func() int { return freePort(t) })
	w.pace(100, 100) // to find the others soon
	return w
}

// pace sets after how many milliseconds each a Sentinel asks for replicas, and announces itself. Redis
// 6.2 does not know the command.
func (r *Server) pace(info, publish int) {
	client := r.probe()
	defer func() { _ = client.Close() }()
	_ = client.Do(context.Background(), "sentinel", "debug", "info-period", info, "publish-period", publish).Err()
}

// awaitWatch waits until a Sentinel knows the replica and the two other Sentinels, and reports
// whether it does.
func (r *Server) awaitWatch() bool {
	ctx, client := context.Background(), r.sentinel()
	defer func() { _ = client.Close() }()
	return WaitUntil(func() bool {
		master, _ := client.Master(ctx, masterName).Result()
		return master["num-slaves"] == "1" && master["num-other-sentinels"] == "2" && master["flags"] == "master"
	}, patience)
}

// sentinel returns a client of a Sentinel. The caller closes it.
func (r *Server) sentinel() *redis.SentinelClient {
	return redis.NewSentinelClient(&redis.Options{Addr: r.Addr(), ReadTimeout: patience, MaxRetries: -1})
}

// Nodes returns the server that was the master first, and the one that was its replica.
func (s *Sentinel) Nodes() []*Server { return s.nodes }

// Master returns where the master listens now, according to the Sentinels.
func (s *Sentinel) Master(t testing.TB) (addr string) {
	t.Helper()
	client := s.watchers[0].sentinel()
	defer func() { _ = client.Close() }()
	at, err := client.GetMasterAddrByName(context.Background(), masterName).Result()
	if err != nil || len(at) != 2 {
		t.Fatalf("redistest: the Sentinel names no master: %v, %v", at, err)
	}
	return at[0] + ":" + at[1]
}

// FailOver makes the replica take the place of a healthy master, as before maintenance.
func (s *Sentinel) FailOver(t testing.TB) {
	t.Helper()
	client := s.watchers[0].sentinel()
	defer func() { _ = client.Close() }()
	var err error
	if !WaitUntil(func() bool {
		err = client.Failover(context.Background(), masterName).Err()
		return err == nil
	}, patience) {
		t.Fatalf("redistest: the Sentinel does not begin a failover: %v", err)
	}
}

// Client returns a client that asks the Sentinels for the master, and is closed when the test t
// ends. Its options are go-redis's defaults; each change may set others.
func (s *Sentinel) Client(t testing.TB, change ...func(*redis.FailoverOptions)) *redis.Client {
	options := &redis.FailoverOptions{MasterName: masterName}
	for _, watcher := range s.watchers {
		options.SentinelAddrs = append(options.SentinelAddrs, watcher.Addr())
	}
	for _, apply := range change {
		apply(options)
	}
	client := redis.NewFailoverClient(options)
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}
