package limittest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
)

// Adapter is a framework's adapter under test: how to serve an app with a real server of the framework.
type Adapter struct {
	// Serve serves the app on the listener and returns a function that ends the server. Every app has a recovery, the
	// framework's own, around everything.
	Serve func(t testing.TB, l net.Listener, app App) (stop func())
	// Do makes one call over a connection that dial opens; nil: an HTTP/1.1 request.
	Do func(t testing.TB, dial Dial, call Call) Reply
	// RPC says that calls have no HTTP methods, no route parameters and no bodies of their own: scenarios about these are
	// not for this adapter.
	RPC bool
	// NoRouteInUse says that a middleware of the whole router does not know the route yet.
	NoRouteInUse bool
}

// App is a small service in no framework's words.
type App struct {
	Limiter *core.Limiter
	// Before, when set, is a middleware in front of all others: it may replace the call's context.
	Before func(context.Context) context.Context
	// Values are left by a middleware in front in the framework's own store, under these names.
	Values map[string]string
	// Use are the limits of the whole router, each list a middleware, the outermost first.
	Use [][]core.Rule
	// Routes are what is served. Everything else is the framework's own 404.
	Routes []Route
}

// Enter is what a middleware in front does to the call's context, for a framework whose own store is the context.
func (a App) Enter(ctx context.Context) context.Context {
	ctx = valued{ctx, a.Values}
	if a.Before != nil {
		ctx = a.Before(ctx)
	}
	return ctx
}

// valued is a context with values under plain strings, as applications have them.
type valued struct {
	context.Context
	values map[string]string
}

// Value implements context.Context.
func (v valued) Value(key any) any {
	if name, ok := key.(string); ok {
		if value, ok := v.values[name]; ok {
			return value
		}
	}
	return v.Context.Value(key)
}

// Route is one route of an App.
type Route struct {
	Method string // GET unless set
	// Path is /word/word, or with a parameter /word/{id}, in the spelling of net/http.
	Path string
	// Limits of this route, each list a middleware, the outermost first.
	Limits [][]core.Rule
	// Handle writes the reply; unless set it is 200 "ok".
	Handle func(Handling)
}

// Handling is what a handler may do with the call that it got.
type Handling interface {
	// Context is what the framework's handlers take as the call's context.
	Context() context.Context
	// Allow is the adapter's Allow, with the app's limiter. After false the handler must write nothing.
	Allow(rule core.Rule, subject string) bool
	// Text replies 200 with a text.
	Text(text string)
}

// Serve runs what a route does.
func (r Route) Serve(h Handling) {
	if r.Handle == nil {
		h.Text("ok")
		return
	}
	r.Handle(h)
}

// Dial opens a connection to the server under test.
type Dial func(ctx context.Context) (net.Conn, error)

// Call is one call of a client.
type Call struct {
	Method, Path string
	Header       http.Header
}

// Reply is what came of a call. RPC adapters put their outcome into the words of HTTP: the status that stands for the code,
// the trailers as headers, and Retry-After from RetryInfo.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// scenario is one thing that every adapter must do right, in process and in Redis.
type scenario struct {
	name     string
	run      func(t *testing.T, s *site)
	httpOnly bool
}

// Run holds an adapter to every scenario, counting in process and in a real Redis.
//
//	func TestAdapter(t *testing.T) { limittest.Run(t, limittest.Adapter{Serve: serve}) }
func Run(t *testing.T, adapter Adapter) {
	server := StartRedis(t)
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

func (a Adapter) run(t *testing.T, list []scenario, client func(t *testing.T) redis.UniversalClient) {
	if a.Do == nil {
		a.Do = doHTTP
	}
	for _, sc := range list {
		if sc.httpOnly && a.RPC {
			continue
		}
		t.Run(sc.name, func(t *testing.T) { sc.run(t, &site{adapter: a, client: client(t), network: "tcp"}) })
	}
}

func scenarios() (all []scenario) {
	for _, group := range [][]scenario{
		limitScenarios, wireScenarios, loginScenarios, addressScenarios, pathScenarios, handlerScenarios, failureScenarios,
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
	t.Cleanup(s.adapter.Serve(t, l, app))
}

// get calls a path; headers are "Name: value".
func (s *site) get(t *testing.T, path string, headers ...string) Reply {
	t.Helper()
	return s.do(t, "GET", path, headers...)
}

func (s *site) do(t *testing.T, method, path string, headers ...string) Reply {
	t.Helper()
	call := Call{Method: method, Path: path, Header: make(http.Header)}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		call.Header.Add(name, value)
	}
	return s.adapter.Do(t, s.dial, call)
}

// want calls a path and compares the status.
func (s *site) want(t *testing.T, status int, path string, headers ...string) Reply {
	t.Helper()
	reply := s.get(t, path, headers...)
	if reply.Status != status {
		t.Fatalf("GET %s %v: status %d, want %d; body %q", path, headers, reply.Status, status, reply.Body)
	}
	return reply
}

// limit is a middleware of these rules.
func limit(rules ...core.Rule) [][]core.Rule { return [][]core.Rule{rules} }
