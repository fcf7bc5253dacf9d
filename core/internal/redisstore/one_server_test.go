package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// oneKeyReports records why scripts get the keys of one call only.
type oneKeyReports struct {
	redisstore.NoListener
	mu      sync.Mutex
	reasons []string
}

func (r *oneKeyReports) OneKeyPerScript(_ string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = append(r.reasons, why.Error())
}

func (r *oneKeyReports) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.reasons...)
}

// newReportingStore returns a store with a listener.
func newReportingStore(t testing.TB, client redis.UniversalClient) (store, *oneKeyReports) {
	s, reports := newStore(t, client, patient), new(oneKeyReports)
	s.Listen(reports)
	return s, reports
}

// mixed is a set of keys that many callers use at once.
type mixed struct {
	name   string
	limits []*algorithm.Limit
	keys   int
	most   int64 // of each key
	passed []atomic.Int64
}

// mixOf returns keys whose counters have this many permits.
func mixOf(t testing.TB, name string, keys int, most int64) *mixed {
	m := &mixed{name: name, keys: keys, most: most, passed: make([]atomic.Int64, keys)}
	for _, limit := range limits(t, most) {
		m.limits = append(m.limits, limit)
	}
	return m
}

func (m *mixed) counter(key int) algorithm.Counter {
	return counter(fmt.Sprint(m.name, key), m.limits[key%len(m.limits)])
}

// use has a crowd take each key about so many times. Calls may fail only if failures are allowed.
func (m *mixed) use(t testing.TB, s store, times int, mayFail bool) {
	t.Helper()
	together(callers, func(i int) {
		for n := range m.keys * times / callers {
			key := (i + n*callers) % m.keys
			switch v := s.take(context.Background(), m.counter(key))[0]; {
			case passes(v):
				m.passed[key].Add(1)
			case v.RetryAfter == 0 && !mayFail:
				t.Errorf("%+v", v)
			}
		}
	})
}

// wantExact checks that what passed is what was charged, and, if all is used up, what there was.
func (m *mixed) wantExact(t testing.TB, s store) {
	t.Helper()
	for key := range m.keys {
		c, passed := m.counter(key), m.passed[key].Load()
		if left := s.left(t, c); passed > m.most || left != m.most-passed {
			t.Errorf("%s: %d of %d calls passed, and %d are left", c.Key, passed, m.most, left)
		}
	}
}

// keepUsing uses a key set until a condition holds.
func keepUsing(t *testing.T, what string, s store, is func() bool) {
	t.Helper()
	round := 0
	wantSoon(t, what, func() bool {
		m := mixOf(t, fmt.Sprint(t.Name(), what, round), 256, 3)
		round++
		m.use(t, s, 1, false)
		return is()
	})
}

// Scripts have the keys of several calls only where one server holds all keys. Elsewhere it is
// reported once why not. Every count is exact.
func TestWhereScriptsHaveKeysOfSeveralCalls(t *testing.T) {
	one, other := redistest.Start(t), redistest.Start(t)
	for _, test := range []struct {
		name   string
		route  route
		change func(*redis.Options)
		reason string
	}{
		{"one server", toOne(one), nil, ""},
		{"a proxy that sends a script to the server of its first key", toAll(one, other), nil, "did not find all"},
		{"a proxy that refuses keys of several slots", slotwise(toAll(one, other)), nil, "CROSSSLOT"},
		{"a cluster of one server", toOne(startClusterOfOne(t)), nil, "CROSSSLOT"},
		{"a server without the right to MGET", toOne(one), as(t, one, "-mget"), "script"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := startKeyProxy(t, test.route)
			s, reports := newReportingStore(t, p.client(t, test.change))
			keepUsing(t, "it is known whether one server holds all keys", s, func() bool { return p.joins() || len(reports.all()) > 0 })
			m := mixOf(t, t.Name(), 300, 5)
			m.use(t, s, 10, false)
			m.wantExact(t, s)
			for key := range m.passed {
				if n := m.passed[key].Load(); n != 5 {
					t.Errorf("key %d: %d calls passed, want 5", key, n)
				}
			}
			got := reports.all()
			switch {
			case test.reason == "" && (!p.joins() || len(got) > 0):
				t.Errorf("%+v, reports: %q", p.scripts(), got)
			case test.reason != "" && (p.joins() || len(got) != 1 || !strings.Contains(got[0], test.reason)):
				t.Errorf("%+v, reports: %q, want one of %q", p.scripts(), got, test.reason)
			}
		})
	}
}

// startClusterOfOne starts a server that has all slots of a cluster.
func startClusterOfOne(t *testing.T) *redistest.Server {
	t.Helper()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	client := server.Client(t)
	if err := client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, "the cluster takes calls", func() bool {
		return strings.Contains(client.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	return server
}

// as makes a user of a server who may do everything, except for these rules, and returns the option
// of a client that is this user.
func as(t *testing.T, server *redistest.Server, rules ...any) func(*redis.Options) {
	t.Helper()
	if err := server.Client(t).Do(t.Context(), append([]any{"acl", "setuser", "limiter", "on", ">secret", "~*", "+@all"}, rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
	return func(o *redis.Options) { o.Username, o.Password = "limiter", "secret" }
}

// If the right to MGET is taken away while calls are joined, they are decided one by one. If the
// right to SET is, they fail for that reason. Nobody is charged for a call that failed.
func TestARightIsTakenAway(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	for _, right := range []string{"mget", "set"} {
		t.Run(right, func(t *testing.T) {
			p := startKeyProxy(t, toOne(server))
			s, reports := newReportingStore(t, p.client(t, as(t, server)))
			keepUsing(t, "scripts have the keys of several calls", s, p.joins)
			m := mixOf(t, t.Name(), 128, 1000)
			before := p.scripts().joined
			var using sync.WaitGroup
			using.Go(func() { m.use(t, s, 20, right == "set") })
			wantSoon(t, "calls are joined", func() bool { return p.scripts().joined > before })
			if err := admin.Do(t.Context(), "acl", "setuser", "limiter", "-"+right).Err(); err != nil {
				t.Fatal(err)
			}
			using.Wait()
			wantSoon(t, "it is reported why calls are decided one by one", func() bool {
				m.use(t, s, 1, right == "set")
				return len(reports.all()) > 0
			})
			before = p.scripts().joined
			v := s.take(t.Context(), m.counter(0))[0]
			if right == "mget" && passes(v) {
				m.passed[0].Add(1)
			} else if right == "mget" || v.Err == nil || !strings.Contains(v.Err.Error(), "script") {
				t.Errorf("without the right to %s: %+v", right, v)
			}
			m.use(t, s, 1, right == "set")
			if after := p.scripts().joined; after != before {
				t.Errorf("%d scripts had the keys of several calls since it was reported", after-before)
			}
			m.wantExact(t, s)
		})
	}
}

// What is behind an address may be another thing after a reconnect. No script has the keys of
// several calls there until that is found out, even if the client's owner, or the pool in the
// background, was the first on a connection.
func TestTheProofIsMadeAnewAfterAReconnect(t *testing.T) {
	one, other := redistest.Start(t), redistest.Start(t)
	p := startKeyProxy(t, toOne(one))
	client := p.client(t, func(o *redis.Options) { o.MinIdleConns = 4 })
	s, reports := newReportingStore(t, client)
	keepUsing(t, "scripts have the keys of several calls", s, p.joins)
	m := mixOf(t, t.Name(), 128, 1000)
	keepTrying := func(what string, is func() bool) {
		wantSoon(t, what, func() bool {
			m.use(t, s, 1, true)
			_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "owner").Err() })
			return is()
		})
	}
	p.change(toOne(other))
	keepTrying("scripts have the keys of several calls on the other server", p.joins)
	if got := p.scripts(); got.unproved > 0 || len(reports.all()) > 0 {
		t.Errorf("%+v, reports: %q", got, reports.all())
	}
	p.change(toAll(one, other))
	keepTrying("it is found out that there are several servers", func() bool { return len(reports.all()) > 0 })
	m.use(t, s, 1, false)
	if p.joins() {
		t.Errorf("%+v", p.scripts())
	}
}

// A server that loses the probe keys is not taken for several servers.
func TestAServerLosesTheProbeKeys(t *testing.T) {
	server := redistest.Start(t)
	admin, flushed := server.Client(t), atomic.Bool{}
	p := startKeyProxy(t, func(keys []string) (addr, refusal string) {
		if len(keys) > 1 && strings.HasSuffix(keys[0], ":probe") && flushed.CompareAndSwap(false, true) {
			admin.FlushAll(context.Background())
		}
		return server.Addr(), ""
	})
	s, reports := newReportingStore(t, p.client(t))
	keepUsing(t, "scripts have the keys of several calls", s, p.joins)
	if got := reports.all(); len(got) > 0 || !flushed.Load() {
		t.Errorf("reports: %q", got)
	}
}

// A proof that is being made when the store is closed ends by Timeout, and shows nothing.
func TestCloseWhileAProofIsMade(t *testing.T) {
	server, client := startOne(t)
	s, reports := newStore(t, client, timeout), new(oneKeyReports)
	s.Listen(reports)
	wantSoon(t, "the store decides", func() bool { return passes(s.take(t.Context(), counter("subject", daily(t, 100)))[0]) })
	server.Stop()
	s.Prove()
	due := newAlarm(timeout)
	s.Close()
	if late := due.late(); late > 0 || s.Prove() || len(reports.all()) > 0 {
		t.Errorf("closed %v late, reports: %q", late, reports.all())
	}
	server.Continue()
}

// The servers of a ring have a proof each.
func TestTheProofsOfARing(t *testing.T) {
	one, other, third := redistest.Start(t), redistest.Start(t), redistest.Start(t)
	single := startKeyProxy(t, toOne(one))
	both := startKeyProxy(t, func(keys []string) (server, refusal string) {
		if keys == nil { // PING, without which the ring does not use it
			return other.Addr(), ""
		}
		return toAll(other, third)(keys)
	})
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"single": single.addr(), "both": both.addr()}})
	t.Cleanup(func() { _ = client.Close() })
	s, reports := newReportingStore(t, client)
	m := mixOf(t, t.Name(), 256, 1000)
	wantSoon(t, "it is known for both whether one server holds all keys", func() bool {
		m.use(t, s, 1, false)
		return single.joins() && len(reports.all()) > 0
	})
	m.use(t, s, 1, false)
	m.wantExact(t, s)
	if both.joins() || len(reports.all()) != 1 {
		t.Errorf("%+v, reports: %q", both.scripts(), reports.all())
	}
}

// Each new connection ends the proof, in whatever way it came.
func TestAConnectionEndsTheProof(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		name    string
		connect func(t *testing.T, o *owner)
	}{
		{"for a command", func(t *testing.T, o *owner) {
			o.holdIdle(t)
			o.get(t, o.client)
		}},
		{"for a pipeline", func(t *testing.T, o *owner) {
			o.proxy.change(toOne(server))
			_, _ = o.client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "owner").Err() })
		}},
		{"in the background", func(t *testing.T, o *owner) {
			before := o.dials.Load()
			o.holdIdle(t)
			wantSoon(t, "the pool has made another connection", func() bool { return o.dials.Load() > before })
			wantSoon(t, "it is idle", func() bool { return o.client.PoolStats().TotalConns > uint32(len(o.held)) })
		}},
		{"too late for its command", func(t *testing.T, o *owner) {
			o.holdIdle(t)
			release := o.holdDials()
			ctx, leave := context.WithCancel(t.Context())
			before := o.dials.Load()
			go func() {
				for o.dials.Load() == before {
					runtime.Gosched()
				}
				leave()
			}()
			if err := o.client.Get(ctx, "owner").Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want no connection", err)
			}
			o.letGo()
			wantSoon(t, "there is a proof", o.store.Prove)
			total := o.client.PoolStats().TotalConns
			release()
			wantSoon(t, "the connection is idle", func() bool { return o.client.PoolStats().TotalConns > total })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOwner(t, server, test.name == "in the background")
			wantSoon(t, "there is a proof", o.store.Prove)
			test.connect(t, o)
			if o.store.IsProved() {
				t.Errorf("the proof holds for the new connection, after %d dials: %+v", o.dials.Load(), o.client.PoolStats())
			}
		})
	}
}

// Calls whose proof ends before they are sent, because the only connection for them is new, are sent
// one by one.
func TestTheProofEndsBeforeCallsAreSent(t *testing.T) {
	server := redistest.Start(t)
	o := newOwner(t, server, false)
	o.proxy.change(toAll(server))
	keepUsing(t, "scripts have the keys of several calls", o.store, o.proxy.joins)
	release := o.holdDials()
	o.closeAll()
	before := o.dials.Load()
	m := mixOf(t, t.Name(), callers, 3)
	var using sync.WaitGroup
	using.Go(func() { m.use(t, o.store, 1, false) })
	// One is for a call that is sent directly. The other's pipeline relies on the proof.
	wantSoon(t, "two connections are being made", func() bool { return o.dials.Load() >= before+2 })
	release()
	using.Wait()
	m.wantExact(t, o.store)
	if o.proxy.scripts().blank == 0 {
		t.Errorf("%+v: no script was left blank", o.proxy.scripts())
	}
}

// owner is the owner of a client, who uses it beside a store.
type owner struct {
	client *redis.Client
	proxy  *keyProxy
	store  store
	held   []*redis.Conn
	dials  atomic.Int32
	mu     sync.Mutex
	conns  []net.Conn
	gate   chan struct{} // closed, unless dials are held
}

func newOwner(t *testing.T, server *redistest.Server, keepsOneIdle bool) *owner {
	o := &owner{proxy: startKeyProxy(t, toOne(server)), gate: make(chan struct{})}
	close(o.gate)
	o.client = o.proxy.client(t, func(options *redis.Options) {
		options.Dialer = o.dial
		if keepsOneIdle {
			options.MinIdleConns = 1
		}
	})
	o.get(t, o.client)
	o.store = newStore(t, o.client, patient)
	t.Cleanup(o.letGo)
	return o
}

func (o *owner) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	o.mu.Lock()
	gate := o.gate
	o.mu.Unlock()
	o.dials.Add(1)
	<-gate
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns = append(o.conns, conn)
	return conn, err
}

// closeAll closes all connections on our side, so that none is used any more.
func (o *owner) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range o.conns {
		_ = conn.Close()
	}
	o.conns = nil
}

// holdDials has dials wait until the function is called that it returns.
func (o *owner) holdDials() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gate := make(chan struct{})
	o.gate = gate
	return func() { close(gate) }
}

func (o *owner) get(t *testing.T, client redis.Cmdable) {
	t.Helper()
	if err := client.Get(t.Context(), "owner").Err(); err != redis.Nil {
		t.Error(err)
	}
}

// holdIdle takes all idle connections from the pool.
func (o *owner) holdIdle(t *testing.T) {
	t.Helper()
	for n := o.client.PoolStats().IdleConns; n > 0; n-- {
		conn := o.client.Conn()
		o.held = append(o.held, conn)
		o.get(t, conn)
	}
}

// letGo gives the connections back.
func (o *owner) letGo() {
	for _, conn := range o.held {
		_ = conn.Close()
	}
	o.held = nil
}
