package faults_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const callersLeave = "callers that cancel at once, or bring a 1 ms deadline (grpc-timeout, HTTP/2 RST_STREAM, HTTP/1 connection closed), with FailOpen, " +
	"while Redis is stopped, slow (30 ms), healthy"

// leaving is a limit larger than the number of calls, so that every counted call may reach the
// handler.
var leaving = core.PerHour(1_000_000).Fixed()

// party is a service in one framework, with the results of its calls.
type party struct {
	name               string
	unnoticed          bool // the framework does not report that a caller left
	call               func()
	counter            core.Counter // the one that the calls are charged to
	dial               adaptertest.Dial
	entered, ran       atomic.Int64 // calls that reached the service, and the handler
	counted, uncounted atomic.Int64 // decisions to let a call pass: by Redis, and by FailOpen
	refused            atomic.Int64 // refusals because the caller's context had ended
	decided            atomic.Int64
}

// newParty serves one route with one rule, counted in Redis.
func newParty(t *testing.T, f framework, rdb redis.UniversalClient, timeout time.Duration) *party {
	t.Helper()
	p := new(party)
	limiter := limitertest.New(t, core.Options{
		Redis: rdb, Timeout: timeout, Prefix: fmt.Sprint("leaving", time.Now().UnixNano()), OnDecision: p.hear,
	})
	p.counter = limiter.MustCounter("leaving", leaving)
	rule := core.Rule{Name: "leaving", Limit: leaving, Key: core.Global}
	p.dial = listenAndServe(t, f, adaptertest.App{
		Limiter: limiter,
		Before:  func(ctx context.Context) context.Context { p.entered.Add(1); return ctx },
		Routes: []adaptertest.Route{{Path: "/shop/list", Guards: []*core.Guard{limiter.MustGuard(rule)}, Handle: func(h adaptertest.Handling) {
			p.ran.Add(1)
			h.Text("ok")
		}}},
	})
	return p
}

func (p *party) hear(_ context.Context, e core.Event) {
	switch d := e.Decision; {
	case d.Reason == core.ContextEnded:
		p.refused.Add(1)
	case d.Allowed && d.Source == core.FromRedis:
		p.counted.Add(1)
	case d.Allowed:
		p.uncounted.Add(1)
	}
	p.decided.Add(1)
}

// listenAndServe serves an app with a framework.
func listenAndServe(t *testing.T, f framework, app adaptertest.App) adaptertest.Dial {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, f.Serve(t, l, app))
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
}

// charged returns the charges in Redis, once all calls are decided and Redis has executed what they
// sent.
func (p *party) charged(t *testing.T) int64 {
	t.Helper()
	soon(t, "all calls are decided", func() bool { return p.decided.Load() == p.entered.Load() })
	var charged, before int64 = 0, -1
	soon(t, "Redis has done what it was sent", func() bool {
		d, err := p.counter.Peek(context.Background(), "leaving")
		if err != nil {
			return false
		}
		charged, before = int64(leaving.Max-d.Remaining), charged
		return charged == before && charged >= p.counted.Load()
	})
	return charged
}

// TestCallersLeave makes callers leave in every way that a framework's protocols have, in every
// state of Redis.
func TestCallersLeave(t *testing.T) {
	calls, timeout := 48, 2*time.Second
	if long() {
		calls, timeout = 2000, 15*time.Second
	}
	server := redistest.Start(t)
	quick, slow := server.Client(t), server.Client(t, late(30*time.Millisecond))
	var sum tallied
	for _, state := range []struct {
		name  string
		redis redis.UniversalClient
		stops bool
	}{{"stopped", quick, true}, {"slow", slow, false}, {"healthy", quick, false}} {
		t.Run(state.name, func(t *testing.T) {
			within := timeout
			if !state.stops {
				within = patience // nobody waits for it but on a busy machine
			}
			parties := partiesOf(t, state.redis, within)
			if state.stops {
				server.Stop()
			}
			leaveAll(t, parties, calls)
			server.Continue()
			for _, p := range parties {
				sum.add(t, p, state.stops)
			}
		})
	}
	if !t.Failed() {
		report(t, callersLeave, "%s", &sum)
	}
}

// partiesOf returns one party for each framework and each way to leave it. The timeout is so long
// that all callers leave before it.
func partiesOf(t *testing.T, rdb redis.UniversalClient, timeout time.Duration) (parties []*party) {
	for _, f := range everyFramework(usual) {
		for _, way := range waysOf(f) {
			p := newParty(t, f, rdb, timeout)
			p.name, p.unnoticed, p.call = f.name+", "+way.name, f.unnoticed(), way.leave(t, p.dial)
			parties = append(parties, p)
		}
	}
	return parties
}

// leaveAll makes the callers of all parties call and leave at once, and returns when all calls are
// decided.
func leaveAll(t *testing.T, parties []*party, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range parties {
		all.Go(func() { sixteenAtOnce(calls, p.call) })
	}
	all.Wait()
	for _, p := range parties {
		soon(t, "all calls are decided", func() bool { return p.decided.Load() == p.entered.Load() })
	}
}

// TestDeadlinesNearTimeout makes calls with deadlines just before Timeout. However near they are,
// the store has not failed yet, so FailOpen must not let the calls pass.
func TestDeadlinesNearTimeout(t *testing.T) {
	const timeout = 200
	server := redistest.Start(t)
	rpc := everyFramework(usual)[4]
	var all sync.WaitGroup
	var deadlines []time.Duration
	var parties []*party
	for _, millis := range []time.Duration{1, 2, 5, 20, 50, 100, 150, 180, 190, 195, 198, timeout - 1} {
		// Each party has its own client, so that none waits for another.
		p := newParty(t, rpc, server.Client(t), timeout*time.Millisecond)
		p.call = grpcCall(t, p.dial, func(int64) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 10*time.Second)
		})
		p.call()
		if p.ran.Load() != 1 {
			t.Fatal("a healthy call did not reach the handler")
		}
		parties, deadlines = append(parties, p), append(deadlines, millis*time.Millisecond)
	}
	server.Stop()
	defer server.Continue()
	for i, p := range parties {
		call := grpcCall(t, p.dial, func(int64) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), deadlines[i])
		})
		all.Go(call)
	}
	all.Wait()
	for i, p := range parties {
		soon(t, "the call is decided", func() bool { return p.decided.Load() == p.entered.Load() })
		if p.ran.Load() != 1 || p.uncounted.Load() != 0 {
			t.Errorf("a call with %v to live reached the handler uncounted, Timeout being 200 ms", deadlines[i])
		}
	}
}

// tallied holds the results of all calls.
type tallied struct {
	entered, ran, charged, refused, unnoticed int64
}

// add checks a party and adds its results. Calls that ran must have been counted. Only fiber does
// not notice that a caller left, so there the rule's policy decides when Redis does not answer
// within Timeout.
func (s *tallied) add(t *testing.T, p *party, stopped bool) {
	t.Helper()
	charged := p.charged(t)
	entered, ran, counted, uncounted := p.entered.Load(), p.ran.Load(), p.counted.Load(), p.uncounted.Load()
	if uncounted != 0 && !(stopped && p.unnoticed) {
		t.Errorf("%s: %d calls were let in uncounted", p.name, uncounted)
	}
	if ran != counted+uncounted || counted > charged || charged > entered {
		t.Errorf("%s: %d calls entered, %d reached the handler, %d by Redis's word; Redis holds %d", p.name, entered, ran, counted, charged)
	}
	if stopped && counted != 0 {
		t.Errorf("%s: %d calls were counted by a Redis that stood still", p.name, counted)
	}
	s.unnoticed += uncounted
	s.entered += entered
	s.ran += ran - uncounted
	s.charged += charged
	s.refused += p.refused.Load()
}

// String returns the figure.
func (s *tallied) String() string {
	return fmt.Sprintf("of %d calls in five frameworks %d ended with their callers, %d reached the handler, all counted: Redis holds %d; "+
		"in fiber, which does not tell that a caller left, %d more got the rule's policy when Timeout had passed", s.entered, s.refused, s.ran, s.charged, s.unnoticed)
}

// sixteenAtOnce makes this many calls, 16 at a time.
func sixteenAtOnce(calls int, call func()) {
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range calls / 16 {
				call()
			}
		})
	}
	callers.Wait()
}

// late delays every answer of Redis by this much.
func late(by time.Duration) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return lateConn{conn, by}, err
		}
	}
}

// lateConn is a connection whose reads are delayed.
type lateConn struct {
	net.Conn
	by time.Duration
}

// Read implements net.Conn.
func (c lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(c.by)
	return n, err
}
