// Package limittest tests adapters: Run serves small services through an adapter, with a real server
// of its framework, and holds it to everything that an adapter must do.
package limittest

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
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Adapter is a framework's adapter under test: how to serve an app with a real server of the framework.
type Adapter struct {
	// Serve serves the app on the listener and returns a function that ends the server. Every app has a recovery, the
	// framework's own, around everything.
	Serve func(t testing.TB, l net.Listener, app App) (stop func())
	// Connect makes a client whose connections dial opens; nil: one of HTTP/1.1.
	Connect func(t testing.TB, dial Dial) Client
	// RPC says that calls have no HTTP methods, no route parameters and no bodies of their own: scenarios about these are
	// not for this adapter.
	RPC bool
	// NoRouteInUse says that a middleware of the whole router does not know the route yet.
	NoRouteInUse bool
	// LeavingUnnoticed says that a handler is not told when its caller leaves.
	LeavingUnnoticed bool
	// Endings are the ways for a call to end that only this framework has.
	Endings []Ending
}

// scenario is one thing that every adapter must do right, in process and in Redis.
type scenario struct {
	name     string
	run      func(t *testing.T, s *site)
	httpOnly bool
	noticing bool // it is about handlers which are told that their caller left
}

func (sc *scenario) isFor(a Adapter) bool {
	return !(sc.httpOnly && a.RPC || sc.noticing && a.LeavingUnnoticed)
}

// Run holds an adapter to every scenario, counting in process and in a real Redis.
//
//	func TestAdapter(t *testing.T) { limittest.Run(t, limittest.Adapter{Serve: serve}) }
func Run(t *testing.T, adapter Adapter) {
	server := redistest.Start(t)
	t.Run("memory", func(t *testing.T) {
		adapter.run(t, scenarios(), func(*testing.T) redis.UniversalClient { return nil })
	})
	t.Run("redis", func(t *testing.T) {
		adapter.run(t, scenarios(), func(t *testing.T) redis.UniversalClient { return server.Client(t) })
	})
}

// RunPaths holds an adapter to the scenarios about paths alone, for another configuration of a framework's router.
func RunPaths(t *testing.T, adapter Adapter) {
	adapter.run(t, pathScenarios, func(*testing.T) redis.UniversalClient { return nil })
}

// RunInProcess holds an adapter to every scenario, counting in process alone, for another way of calling a framework.
func RunInProcess(t *testing.T, adapter Adapter) {
	adapter.run(t, scenarios(), func(*testing.T) redis.UniversalClient { return nil })
}

func (a Adapter) run(t *testing.T, list []scenario, client func(t *testing.T) redis.UniversalClient) {
	if a.Connect == nil {
		a.Connect = connectHTTP
	}
	for _, sc := range list {
		if !sc.isFor(a) {
			continue
		}
		t.Run(sc.name, func(t *testing.T) { sc.run(t, &site{adapter: a, client: client(t), network: "tcp"}) })
	}
}

func scenarios() (all []scenario) {
	for _, group := range [][]scenario{
		limitScenarios, wireScenarios, loginScenarios, addressScenarios, hopScenarios, pathScenarios, handlerScenarios, failureScenarios,
		outcomeScenarios, flightScenarios, ruleScenarios, setupScenarios, hostileScenarios,
	} {
		all = append(all, group...)
	}
	return all
}

// site is where a scenario plays: an adapter, an engine, and once served an app.
type site struct {
	adapter Adapter
	client  redis.UniversalClient
	network string // tcp or unix
	peers   *from  // shows the app's connections from somewhere else; nil: from where they are
	dial    Dial
}

// prefixes tells the scenarios' counters in one Redis apart.
var prefixes atomic.Int64

// limiter makes a Limiter on the scenario's engine, with counters of its own.
func (s *site) limiter(t *testing.T, change ...func(*core.Options)) *core.Limiter {
	t.Helper()
	options := core.Options{
		Redis: s.client, Prefix: fmt.Sprintf("test%d", prefixes.Add(1)), Logger: silent,
		Timeout: 5 * time.Second, // a busy test machine is no failing store
	}
	for _, do := range change {
		do(&options)
	}
	return newLimiter(t, options)
}

// newLimiter returns a limiter that is closed when the test ends.
func newLimiter(t testing.TB, options core.Options) *core.Limiter {
	t.Helper()
	limiter, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
}

// serve starts the app; calls go to the one served last.
func (s *site) serve(t *testing.T, app App) {
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
	t.Cleanup(s.adapter.Serve(t, l, app))
}

// limit is a middleware of these rules.
func limit(rules ...core.Rule) [][]core.Rule { return [][]core.Rule{rules} }
