package promise

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Engine is where the limiters under test count: in this process, or in real servers that belong to
// the test.
type Engine struct {
	// Name is the engine's name in the names of tests.
	Name string
	// Servers hold the counters. If there are none, this process does.
	Servers []*redistest.Server
	// connect returns a client of its own, like that of another process. Except for the dialer and the
	// time in which a reply is read, it has go-redis's default options, including retries. 0 is
	// go-redis's own time.
	connect func(t testing.TB, dial dialer, read time.Duration) redis.UniversalClient
}

// dialer opens a client's connections. The nil dialer is go-redis's own.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Engines returns all engines: this process, one Redis server, a cluster of three masters, and a
// ring of three servers. It starts the servers, which end with the test t.
func Engines(t testing.TB) []Engine {
	t.Helper()
	one, cluster, ring := redistest.Start(t), redistest.StartCluster(t), redistest.StartRing(t, 3)
	return []Engine{
		{Name: "memory"},
		{Name: "redis", Servers: []*redistest.Server{one}, connect: func(t testing.TB, dial dialer, read time.Duration) redis.UniversalClient {
			return one.Client(t, func(o *redis.Options) { o.Dialer, o.ReadTimeout = dial, read })
		}},
		{Name: "cluster", Servers: cluster.Nodes(), connect: func(t testing.TB, dial dialer, read time.Duration) redis.UniversalClient {
			return cluster.Client(t, func(o *redis.ClusterOptions) { o.Dialer, o.ReadTimeout = dial, read })
		}},
		{Name: "ring", Servers: ring.Nodes(), connect: func(t testing.TB, dial dialer, read time.Duration) redis.UniversalClient {
			return ring.Client(t, func(o *redis.RingOptions) { o.Dialer, o.ReadTimeout = dial, read })
		}},
	}
}

// Options returns options for a limiter on this engine, with its own client, like that of another
// process, and its own Prefix, and thus its own counters.
func (e Engine) Options(t testing.TB) core.Options { return e.options(t, nil) }

func (e Engine) options(t testing.TB, dial dialer) core.Options {
	o := core.Options{
		Prefix: newPrefix(), Logger: silent,
		Timeout: patient, // a busy test machine must not look like a failing store
	}
	if !e.inProcess() {
		o.Redis = e.connect(t, dial, 0)
	}
	return o
}

// patient is a Timeout for tests that are not about time: longer than any call takes.
const patient = time.Minute

// silent is a logger for tests that do not look at the log.
var silent = slog.New(slog.DiscardHandler)

// prefixes numbers the prefixes that separate the counters of limiters on one Redis.
var prefixes atomic.Int64

// newPrefix returns a prefix that no other limiter of this process has.
func newPrefix() string { return fmt.Sprintf("test%d", prefixes.Add(1)) }

func (e Engine) inProcess() bool { return len(e.Servers) == 0 }

// source is the Source of decisions on this engine.
func (e Engine) source() core.Source {
	if e.inProcess() {
		return core.FromMemory
	}
	return core.FromRedis
}

// limiters returns n limiters that share their counters, as those of several processes do. In
// process it returns one limiter n times.
func (e Engine) limiters(t testing.TB, n int) []*core.Limiter {
	t.Helper()
	options := e.Options(t)
	all := []*core.Limiter{newLimiter(t, options)}
	for len(all) < n {
		next := all[0]
		if !e.inProcess() {
			options.Redis = e.connect(t, nil, 0)
			next = newLimiter(t, options)
		}
		all = append(all, next)
	}
	return all
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
