package limittest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Redis is a real redis-server for one test, on a loopback port, empty at first. It ends with the
// test. Stop, Continue, Kill and Restart must not be called at the same time.
type Redis struct {
	server *redistest.Server
}

// StartRedis starts a redis-server and returns when it answers. It keeps nothing on disk. The args
// are added to the end of its command line, such as "--maxmemory", "2mb".
//
// The environment variable ACCESSLIMIT_REDIS_SERVER names another program to start, by its absolute
// path: a redis-server of another version, or a valkey-server. If the program is missing, the test
// fails.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	return &Redis{redistest.Start(t, args...)}
}

// Addr returns where the server listens, as host:port. It stays the same after Restart.
func (r *Redis) Addr() string { return r.server.Addr() }

// Client returns a client with go-redis's default options, which is closed when the test t ends.
func (r *Redis) Client(t testing.TB) *redis.Client { return r.server.Client(t) }

// Stop suspends the server, as on a machine that hangs: connections stay open, and nothing is
// answered. Commands that clients send meanwhile are executed after Continue.
func (r *Redis) Stop() { r.server.Stop() }

// Continue lets a stopped server run on.
func (r *Redis) Continue() { r.server.Continue() }

// Kill ends the server at once, stopped or not. Connections are refused from then on.
func (r *Redis) Kill() { r.server.Kill() }

// Restart kills the server if it runs, and starts it again at the same address, empty.
func (r *Redis) Restart() { r.server.Restart() }

// NoRedis returns a client of a server that does not exist: each command fails at once. It needs no
// redis-server.
func NoRedis(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}
