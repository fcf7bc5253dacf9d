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
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Engine is where the limiters under test count: in this process, or in real servers that the test
// has for itself.
type Engine struct {
	// Name is what the engine is called in the names of tests.
	Name string
	// Servers hold the counters; none: this process does.
	Servers []*redistest.Server
	// connect makes a client as another process would bring it: of go-redis's own options, retries
	// included, but for dial.
	connect func(t testing.TB, dial dialer) redis.UniversalClient
}

// dialer opens a client's connections; nil is go-redis's own.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Engines are all the ways to count: in this process, in one Redis server, in a cluster of three
// masters and in a ring of three servers. The servers are started once, here, and are gone when the
// test t ends.
func Engines(t testing.TB) []Engine {
	t.Helper()
	one, cluster, ring := redistest.Start(t), redistest.StartCluster(t), redistest.StartRing(t, 3)
	return []Engine{
		{Name: "memory"},
		{Name: "redis", Servers: []*redistest.Server{one}, connect: func(t testing.TB, dial dialer) redis.UniversalClient {
			return one.Client(t, func(o *redis.Options) { o.Dialer = dial })
		}},
		{Name: "cluster", Servers: cluster.Nodes(), connect: func(t testing.TB, dial dialer) redis.UniversalClient {
			return cluster.Client(t, func(o *redis.ClusterOptions) { o.Dialer = dial })
		}},
		{Name: "ring", Servers: ring.Nodes(), connect: func(t testing.TB, dial dialer) redis.UniversalClient {
			return ring.Client(t, func(o *redis.RingOptions) { o.Dialer = dial })
		}},
	}
}

// Options are those of a limiter on this engine: with a client of its own, as another process has,
// and with counters of its own, unless the Prefix is replaced by that of another.
func (e Engine) Options(t testing.TB) core.Options { return e.options(t, nil) }

func (e Engine) options(t testing.TB, dial dialer) core.Options {
	o := core.Options{
		Prefix: newPrefix(), Logger: silent,
		Timeout: patient, // a busy test machine is no failing store
	}
	if !e.inProcess() {
		o.Redis = e.connect(t, dial)
	}
	return o
}

// patient is how long a call of a test may take before the test is stuck.
const patient = 30 * time.Second

// silent is a logger for tests that do not look at the log.
var silent = slog.New(slog.DiscardHandler)

// prefixes tells the counters of the limiters that share a Redis apart.
var prefixes atomic.Int64

// newPrefix returns a prefix that no other limiter of this process has.
func newPrefix() string { return fmt.Sprintf("test%d", prefixes.Add(1)) }

func (e Engine) inProcess() bool { return len(e.Servers) == 0 }

// source is who answers, as decisions say it.
func (e Engine) source() core.Source {
	if e.inProcess() {
		return core.FromMemory
	}
	return core.FromRedis
}

// limiters are n limiters that share their counters, as those of several processes do. Where only
// one process can, they are one limiter n times.
func (e Engine) limiters(t testing.TB, n int) []*core.Limiter {
	t.Helper()
	options := e.Options(t)
	all := []*core.Limiter{newLimiter(t, options)}
	for len(all) < n {
		next := all[0]
		if !e.inProcess() {
			options.Redis = e.connect(t, nil)
			next = newLimiter(t, options)
		}
		all = append(all, next)
	}
	return all
}

// newLimiter makes a limiter that is closed when the test ends.
func newLimiter(t testing.TB, options core.Options) *core.Limiter {
	t.Helper()
	limiter, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
}
