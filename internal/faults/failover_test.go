package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const killedMaster = "cluster: a master killed, its replica takes over"

// TestReplicaTakesOver kills a master under callers over all shards. Once the old master has become a
// replica, the new master is killed, and so on.
func TestReplicaTakesOver(t *testing.T) {
	if !long() { // what it measures depends on the machine
		return
	}
	const times, timeout = 10, 500 * time.Millisecond
	servers := redistest.StartCluster(t, "--cluster-node-timeout", "1000")
	servers.AddReplicas(t)
	var look lookout
	cluster := clustered(t, servers, func(o *redis.ClusterOptions) { o.Dialer = look.dial })
	limiter := cluster.limiter(t, timeout)
	subject := cluster.subject(t, failingShard)
	roles := []*redistest.Server{cluster.nodes[failingShard], servers.Replicas()[failingShard]}
	limit := core.PerDay(1_000_000)
	crowd := newCrowd(t, cluster, newEndpoint(limiter, ruleFor("crowd", limit, core.FailClosed)), 64)
	crowd.gather()
	time.Sleep(time.Second)
	var outages waits
	for range times {
		o := beginOutage(t, limiter, subject, timeout)
		look.await(t, roles[0].Addr())
		crowd.health.Store(isFailing)
		o.mark()
		roles[0].Kill()
		o.wantPolicies()
		o.repaired(roles[1])
		outages.add(o.over())
		crowd.health.Store(isRecovering)
		wantExact(t, limiter, subject)
		roles[0].Restart()
		follows(t, roles[0])
		crowd.health.Store(isWell)
		time.Sleep(5 * time.Second)
		roles[0], roles[1] = roles[1], roles[0]
	}
	crowd.disperse()
	ratio := crowd.wantUnmoved(t, timeout)
	crowd.wantKept(t, cluster.limiter(t, patience), limit)
	report(t, killedMaster, "right limits again %.1f s after the kill (of %d, the longest %.1f s; node timeout 1 s); p99 of the other shards %.2f times that before (%.1f ms, %.1f ms before)",
		outages.percentile(50).Seconds(), times, outages.percentile(100).Seconds(), ratio,
		millis(crowd.during.percentile(99)), millis(crowd.before.percentile(99)))
}

// follows waits until a restarted server is a replica that has caught up with its master.
func follows(t *testing.T, server *redistest.Server) {
	t.Helper()
	client := server.Client(t)
	soon(t, "the old master follows", func() bool {
		info, _ := client.InfoMap(context.Background(), "replication").Result()
		return info["Replication"]["role"] == "slave" && info["Replication"]["master_link_status"] == "up"
	})
}

// outage is a group of callers of one subject, each with another policy. They call from before a
// fault until after it.
type outage struct {
	t       *testing.T
	timeout time.Duration
	stop    chan struct{}
	all     sync.WaitGroup
	end     func() // stops the callers
	begun   time.Time
	marked  time.Duration
	repair  time.Duration // 0: not known

	without atomic.Int64                // start, since begun, of the last call without Redis
	decided atomic.Int64                // how many calls Redis has decided since that one ended, or since the mark
	answers [len(policies)]atomic.Int64 // how often each policy answered
	local   atomic.Int64                // how many calls passed by the count in this process
}

// beginOutage starts a caller for each policy, which calls until the end. All counters are the
// subject's.
func beginOutage(t *testing.T, limiter *core.Limiter, subject string, timeout time.Duration) *outage {
	o := &outage{t: t, timeout: timeout, stop: make(chan struct{}), begun: time.Now()}
	o.end = sync.OnceFunc(func() {
		close(o.stop)
		o.all.Wait()
	})
	bounded.Cleanup(t, o.end)
	for i, policy := range policies {
		rule := ruleFor(fmt.Sprintf("outage %v %d", policy, o.begun.UnixNano()), core.PerDay(atHomeOf), policy)
		d := newEndpoint(limiter, rule)
		if k := d.call(subject); !k.byRedis() {
			t.Fatalf("before the fault: %+v", k.Decision)
		}
		o.all.Go(func() { o.call(d, subject, i) })
	}
	return o
}

func (o *outage) call(d endpoint, subject string, policy int) {
	for {
		select {
		case <-o.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		at := time.Since(o.begun)
		k := d.call(subject)
		k.wantPolicy(o.t, policies[policy], o.timeout)
		if k.byRedis() {
			o.decided.Add(1)
			continue
		}
		o.decided.Store(0)
		o.answers[policy].Add(1)
		if k.Source == core.FromLocal && k.Allowed {
			o.local.Add(1)
		}
		for last := o.without.Load(); int64(at) > last && !o.without.CompareAndSwap(last, int64(at)); last = o.without.Load() {
		}
	}
}

// mark records the moment from which over measures.
func (o *outage) mark() {
	o.marked = time.Since(o.begun)
	o.decided.Store(0)
}

// wantPolicies waits until each policy has answered in place of Redis more than once, and checks
// that the count in this process let exactly its share pass.
func (o *outage) wantPolicies() {
	o.t.Helper()
	for i, policy := range policies {
		soon(o.t, policy.String()+" answers", func() bool { return o.answers[i].Load() > 2*shareAtHome })
	}
	if n := o.local.Load(); n != shareAtHome {
		o.t.Errorf("%d calls passed in this process, want %d", n, shareAtHome)
	}
}

// repaired waits until a server itself accepts writes, marks that moment, and then waits until
// calls go there.
func (o *outage) repaired(server *redistest.Server) {
	o.t.Helper()
	client := server.Client(o.t)
	soon(o.t, "a master is there", func() bool {
		info, _ := client.InfoMap(context.Background(), "replication").Result()
		return info["Replication"]["role"] == "master"
	})
	o.repair = time.Since(o.begun)
	o.reaches(server)
}

// reaches waits until calls go to a server, which was not the master before. While the old master
// is well it may decide them for a while.
func (o *outage) reaches(server *redistest.Server) {
	o.t.Helper()
	client := server.Client(o.t)
	soon(o.t, "the calls go there", func() bool {
		info, _ := client.Info(context.Background(), "commandstats").Result()
		return strings.Contains(info, "cmdstat_eval")
	})
}

// over waits until Redis has decided all calls for a while. It returns the time from the mark to
// the beginning of the last call that Redis did not decide.
func (o *outage) over() time.Duration {
	o.t.Helper()
	soon(o.t, "Redis decides again", func() bool {
		return time.Since(o.begun)-max(o.marked, time.Duration(o.without.Load())) > o.timeout+300*time.Millisecond && o.decided.Load() > 50
	})
	o.end()
	last := time.Duration(o.without.Load())
	if after := last - o.repair; o.repair > 0 && after > recovery+mayBeLate {
		o.t.Errorf("calls were still decided without Redis %v after a master was there again", after)
	}
	return max(0, last-o.marked)
}

// recovery is how long calls may be decided without Redis after it has recovered. The breaker tries
// at least once a second, and the first try may only learn that there is a new master.
const recovery = 2 * time.Second

// wantExact fails unless a fresh limit of each algorithm lets exactly Max calls pass.
func wantExact(t *testing.T, limiter *core.Limiter, subject string) {
	t.Helper()
	for _, limit := range eachAlgorithm(20) {
		name, passed := fmt.Sprintf("exact %v %d", limit.Algorithm, time.Now().UnixNano()), 0
		take := taker(t, limiter, name, limit)
		for range 2 * limit.Max {
			allowed, err := take(subject)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if allowed {
				passed++
			}
		}
		if passed != limit.Max {
			t.Errorf("%s: %d passed of %d", name, passed, limit.Max)
		}
	}
}

// taker returns a function that takes one permit, or a slot until the test ends.
func taker(t *testing.T, limiter *core.Limiter, name string, limit core.Limit) func(subject string) (allowed bool, err error) {
	t.Helper()
	if limit.Algorithm != core.Concurrency {
		counter := limiter.MustCounter(name, limit)
		return func(subject string) (bool, error) {
			d, err := counter.Allow(context.Background(), subject)
			return d.Allowed, err
		}
	}
	slots := slotsOf(limiter, name, limit)
	return func(subject string) (bool, error) {
		release, d, err := slots.Hold(context.Background(), subject)
		t.Cleanup(release)
		return d.Allowed, err
	}
}

// wantKept fails unless each call on the healthy shards was charged once. The other shard may have
// lost charges that had not reached its replica when its master was killed.
func (c *crowd) wantKept(t *testing.T, limiter *core.Limiter, limit core.Limit) {
	t.Helper()
	for _, caller := range c.callers {
		charged := used(t, limiter, "crowd", caller.subject, limit)
		if charged > caller.calls || caller.shard != failingShard && charged != caller.calls {
			t.Errorf("%s on shard %d: %d charged for %d calls", caller.subject, caller.shard, charged, caller.calls)
		}
	}
}

// lookout records which servers have answered a client's INFO. A limiter cannot notice that a
// server was replaced before it has its INFO.
type lookout struct {
	mu    sync.Mutex
	known map[string]bool // by their addresses
}

// dial is a Dialer.
func (l *lookout) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &watched{conn, l, addr}, nil
}

// await waits until a server has answered INFO.
func (l *lookout) await(t *testing.T, addr string) {
	t.Helper()
	soon(t, "the limiter knows the server", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.known[addr]
	})
}

// watched is a connection to a server.
type watched struct {
	net.Conn
	lookout *lookout
	addr    string
}

// SyscallConn lets go-redis see whether the connection has ended.
func (w *watched) SyscallConn() (syscall.RawConn, error) { return w.Conn.(*net.TCPConn).SyscallConn() }

// Read looks for the answer to INFO in what it reads.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("run_id:")) {
		w.lookout.mu.Lock()
		defer w.lookout.mu.Unlock()
		if w.lookout.known == nil {
			w.lookout.known = make(map[string]bool)
		}
		w.lookout.known[w.addr] = true
	}
	return n, err
}
