package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// oneKeyReports records the reports of OneKeyPerScript and TagsIgnored.
type oneKeyReports struct {
	redisstore.NoListener
	mu          sync.Mutex
	reasons     []string
	tagsIgnored int
}

func (r *oneKeyReports) TagsIgnored(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tagsIgnored++
}

func (r *oneKeyReports) ignored() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tagsIgnored
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

// Scripts have the keys of several calls only if one server holds all keys. Otherwise the reason is
// reported once. Every count is exact.
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
		{"a server without MGET", toOne(redistest.Start(t, "--rename-command", "MGET", "")), nil, "called from"},
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

// as makes a user of a server with all rights, changed by these rules. It returns the option of a
// client for this user.
func as(t *testing.T, server *redistest.Server, rules ...any) func(*redis.Options) {
	t.Helper()
	if err := server.Client(t).Do(t.Context(), append([]any{"acl", "setuser", "limiter", "on", ">secret", "~*", "+@all"}, rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
	return func(o *redis.Options) { o.Username, o.Password = "limiter", "secret" }
}

// If the user loses the right to MGET while calls are joined, the calls are decided one by one. If
// the user loses the right to SET, the calls fail for that reason. No call that fails is charged.
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

// An address may lead to another server after a reconnect, or to several. The proof is made again when a call
// that relied on it got no answer.
func TestProofIsRepeatedAfterAReconnect(t *testing.T) {
	one, other := redistest.Start(t), redistest.Start(t)
	p := startKeyProxy(t, toOne(one))
	s, reports := newReportingStore(t, p.client(t))
	keepUsing(t, "scripts have the keys of several calls", s, p.joins)
	m := mixOf(t, t.Name(), 128, 1000)
	for _, next := range []struct {
		route   route
		what    string
		reports int
	}{
		{toOne(other), "a proof is made on the other server", 0},
		{toAll(one, other), "it is found out that there are several servers", 1},
	} {
		wantSoon(t, next.what, func() bool {
			var using sync.WaitGroup
			using.Go(func() { m.use(t, s, 10, true) })
			p.change(next.route) // perhaps while no call is on its way
			using.Wait()
			return p.scripts().probes > 0 && len(reports.all()) == next.reports
		})
	}
	m.use(t, s, 1, true)
	before := p.scripts().joined
	if m.use(t, s, 1, false); p.scripts().joined != before {
		t.Errorf("%+v after %q", p.scripts(), reports.all())
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
	server, client := startOne(t, endlessly)
	s, reports := newStore(t, client, timeout), new(oneKeyReports)
	s.Listen(reports)
	wantSoon(t, "the store decides", func() bool { return passes(s.take(t.Context(), counter("subject", daily(t, 100)))[0]) })
	server.Stop()
	s.Prove()
	if !wantReturn(t, "Close", s.Close) || s.Prove() || len(reports.all()) > 0 {
		t.Errorf("reports: %q", reports.all())
	}
	server.Continue()
}

// Each server of a ring has a proof of its own.
func TestProofsOfARing(t *testing.T) {
	one, other, third := redistest.Start(t), redistest.Start(t), redistest.Start(t)
	single := startKeyProxy(t, toOne(one))
	both := startKeyProxy(t, func(keys []string) (server, refusal string) {
		if keys == nil { // PING, without which the ring does not use it
			return other.Addr(), ""
		}
		return toAll(other, third)(keys)
	})
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"single": single.addr(), "both": both.addr()}})
	bounded.Cleanup(t, func() { _ = client.Close() })
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

// A trip without an answer ends the proof. A caller who leaves does not.
func TestProofEndsWithoutAnAnswer(t *testing.T) {
	server, client := startOne(t)
	s := newStore(t, client, timeout)
	m := mixOf(t, t.Name(), 128, 1000)
	wantSoon(t, "there is a proof", func() bool {
		m.use(t, s, 1, false)
		return s.Prove()
	})
	left, leave := context.WithCancel(t.Context())
	leave()
	soon, cancel := context.WithTimeout(t.Context(), time.Microsecond)
	defer cancel()
	for _, ctx := range []context.Context{left, soon} {
		if v := s.take(ctx, m.counter(0), m.counter(1)); v[0].Ended == nil || !s.Prove() {
			t.Errorf("after a caller has left, %+v, the proof has ended", v)
		}
	}
	server.Stop()
	defer server.Continue()
	if m.use(t, s, 1, true); s.Prove() {
		t.Error("the proof still holds")
	}
}
