package adaptertest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// Adapter is an adapter under test.
type Adapter struct {
	// Serve serves the app on the listener, with a real server of the framework and through the
	// adapter, and returns a function that ends the server. The framework's own recovery must be
	// around everything.
	Serve func(t testing.TB, l net.Listener, app App) (stop func())
	// Connect returns a client whose connections dial opens. If it is nil, the client speaks
	// HTTP/1.1.
	Connect func(t testing.TB, dial Dial) Client
	// RPC reports whether calls have no HTTP methods, no route parameters and no bodies of their
	// own. Scenarios about these are then left out.
	RPC bool
	// Cannot names the features that the framework does not have, each with the reason. Scenarios
	// that need one are left out, or try what must happen instead.
	Cannot map[Feature]string
	// Endings are the ways for a call to end that only this framework has.
	Endings []Ending
}

// scenario is one thing that every adapter must do right, in process and with Redis.
type scenario struct {
	name     string
	run      func(t *testing.T, s *site)
	httpOnly bool
	needs    Feature // "" if every framework can run it
}

func (sc *scenario) isFor(a Adapter) bool {
	return !(sc.httpOnly && a.RPC) && a.can(sc.needs)
}

// Run checks the contract of an adapter and runs every scenario, in process and with a real Redis.
//
//	func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Adapter{Serve: serve}) }
//
// Run first makes a few calls that find common mistakes, and reports the method of the View, what
// it returned, and what it should have returned. If there is no mistake, Run runs the scenarios.
func Run(t *testing.T, adapter Adapter) {
	if !adapter.prepare(t) || !t.Run("memory", func(t *testing.T) { adapter.run(t, scenarios(), inProcess) }) {
		return // the same would fail with Redis
	}
	server := limittest.StartRedis(t)
	t.Run("redis", func(t *testing.T) {
		adapter.run(t, scenarios(), func(t *testing.T) redis.UniversalClient { return server.Client(t) })
	})
}

// RunPaths runs only the scenarios about paths, for another configuration of a framework's router.
func RunPaths(t *testing.T, adapter Adapter) {
	if adapter.prepare(t) {
		adapter.run(t, pathScenarios, inProcess)
	}
}

// RunInProcess runs every scenario, but counts only in process. It is for another way of calling a
// framework.
func RunInProcess(t *testing.T, adapter Adapter) {
	if adapter.prepare(t) {
		adapter.run(t, scenarios(), inProcess)
	}
}

// inProcess is the client of scenarios that count in process: none.
func inProcess(*testing.T) redis.UniversalClient { return nil }

// prepare completes the Adapter, checks its contract, and reports whether it holds.
func (a *Adapter) prepare(t *testing.T) bool {
	t.Helper()
	a.complete(t)
	return t.Run("contract", func(t *testing.T) { a.contract(t) })
}

// complete fills in what is unset, and fails the test if Cannot is wrong.
func (a *Adapter) complete(t testing.TB) {
	t.Helper()
	a.checkCannot(t)
	if a.Connect == nil {
		a.Connect = connectHTTP
	}
}

// run runs scenarios. If one fails after a long wait, the run ends, because the others would
// probably wait as long.
func (a Adapter) run(t *testing.T, list []scenario, client func(t *testing.T) redis.UniversalClient) {
	for _, sc := range list {
		if !sc.isFor(a) {
			continue
		}
		begin := time.Now()
		passed := t.Run(sc.name, func(t *testing.T) {
			s := &site{adapter: a, client: client(t), network: "tcp"}
			t.Cleanup(func() { s.trace.print(t) })
			sc.run(t, s)
		})
		if !passed && time.Since(begin) > patience {
			t.Fatalf("adaptertest: the scenario %q waited in vain, so the ones after it are skipped", sc.name)
		}
	}
}

func scenarios() (all []scenario) {
	for _, group := range [][]scenario{
		limitScenarios, headerScenarios, wireScenarios, loginScenarios, addressScenarios, hopScenarios, pathScenarios, handlerScenarios, failureScenarios,
		outcomeScenarios, settleScenarios, leftScenarios, firstScenarios, flightScenarios, lentScenarios, ruleScenarios, followScenarios, ownScenarios, explainScenarios, setupScenarios, hostileScenarios,
	} {
		all = append(all, group...)
	}
	return all
}

// site is what a scenario uses: an adapter, a store, and the app that was served last.
type site struct {
	adapter Adapter
	client  redis.UniversalClient
	network string // tcp or unix
	peers   *from  // makes connections seem to come from other peers; nil if not needed
	dial    Dial
	trace   trace
}

// prefixes numbers the key prefixes, so that the scenarios can share one Redis.
var prefixes atomic.Int64

// limiter returns a Limiter on the scenario's store, with counters of its own.
func (s *site) limiter(t testing.TB, change ...func(*core.Options)) *core.Limiter {
	t.Helper()
	options := core.Options{
		Redis: s.client, Prefix: fmt.Sprintf("test%d", prefixes.Add(1)), Logger: silent,
		Timeout: time.Minute, // so that a busy machine does not look like a failing store
	}
	for _, do := range change {
		do(&options)
	}
	s.trace.noteDecisions(&options)
	return newLimiter(t, options)
}

// newLimiter returns a limiter that is closed when the test ends.
func newLimiter(t testing.TB, options core.Options) *core.Limiter {
	t.Helper()
	limiter, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, limiter.Close)
	return limiter
}

// serve starts the app. Calls go to the app that was served last.
func (s *site) serve(t testing.TB, app App) {
	t.Helper()
	address := "127.0.0.1:0"
	if s.network == "unix" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	l, err := net.Listen(s.network, address)
	if err != nil {
		t.Fatal(err)
	}
	s.dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}
	if s.peers != nil {
		s.peers.Listener = l
		l = s.peers
	}
	s.adapter.serve(t, l, app)
}

// serve calls Serve, and ends the server when the test ends. Neither may take longer than patience.
func (a Adapter) serve(t testing.TB, l net.Listener, app App) {
	t.Helper()
	app.guard()
	served := make(chan func(), 1)
	go func() {
		defer close(served) // also if Serve fails the test
		served <- a.Serve(t, l, app)
	}()
	select {
	case stop, ok := <-served:
		if !ok {
			t.FailNow()
		}
		bounded.Cleanup(t, func() { ended(t, stop) })
	case <-time.After(patience):
		t.Fatalf("adaptertest: Serve did not return within %v: the server must run in a goroutine of its own", patience)
	}
}

// ended calls stop, and fails the test if it does not return within patience.
func ended(t testing.TB, stop func()) {
	t.Helper()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Errorf("adaptertest: the function that Serve returned did not end the server within %v", patience)
	}
}

// limit returns one middleware with these rules.
func limit(rules ...core.Rule) [][]core.Rule { return [][]core.Rule{rules} }
