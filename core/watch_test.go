package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// watched returns a limiter, its log, and a function that makes a call.
func watched(t *testing.T, server *redistest.Server, change ...func(*redis.Options)) (limiter *core.Limiter, log *logtest.Log, call func()) {
	log = new(logtest.Log)
	limiter = newLimiter(t, core.Options{Redis: server.Client(t, change...), Logger: log.Logger()})
	return limiter, log, func() { _, _ = limiter.MustCounter("n", core.PerSecond(1000)).Allow(background, "s") }
}

// If a server is killed and comes back empty, the log and Stats show that it did not answer, that
// it answers again, and that it has lost its counters.
func TestALostRedisIsReported(t *testing.T) {
	server := redistest.Start(t)
	limiter, log, call := watched(t, server)
	call()
	asked := 0 // INFO by this test, which does not count the one that is under way
	eventually(t, "the limiter knows the server", func() bool {
		asked++
		stats := server.Client(t).Info(background, "commandstats").Val()
		return strings.Contains(stats, "cmdstat_info:") && !strings.Contains(stats, fmt.Sprintf("cmdstat_info:calls=%d,", asked-1))
	})
	for losses := range uint64(2) {
		server.Kill()
		eventually(t, "the breaker opens", func() bool { call(); return limiter.Stats().Shards[0].Breaker == "open" })
		server.Restart()
		eventually(t, "the loss is found", func() bool {
			call()
			s := limiter.Stats()
			return s.Losses > losses && s.Shards[0].Breaker == "closed"
		})
		if s := limiter.Stats(); s.Losses != losses+1 || s.Shards[0].Opened < losses+1 {
			t.Errorf("%+v", s)
		}
	}
	limiter.Close()
	if log.Count("level=WARN", "is tried once in a while", "addr="+server.Addr()) == 0 || log.Count("level=INFO", "answers again", "after=") == 0 ||
		log.Count("level=WARN", "restarted or replaced", "addr="+server.Addr()) != 2 {
		t.Error(log.String())
	}
}

// A server that lost its scripts, or all its counters by a command, is not reported as lost.
func TestARedisThatStayedIsNotLost(t *testing.T) {
	server := redistest.Start(t)
	limiter, log, call := watched(t, server)
	for range 20 {
		call()
		server.Client(t).ScriptFlush(background)
		server.Client(t).FlushAll(background)
	}
	limiter.Close() // it waits for the watch in the background
	if s := limiter.Stats(); s.Losses != 0 || s.StoreErrors != nil || log.Count("WARN") != 0 {
		t.Errorf("%+v, %s", s, log.String())
	}
}

// A server that evicts counters is reported, if its user may call INFO.
func TestAnEvictingRedisIsReported(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		rights string
		want   int
	}{
		{"it evicts", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "+info", 1},
		{"it would, but has no bound", []string{"--maxmemory-policy", "allkeys-lru"}, "+info", 0},
		{"it does not", []string{"--maxmemory", "100mb"}, "+info", 0},
		{"it may not be asked", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "-info", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t, test.args...)
			if err := server.Client(t).Do(background, "acl", "setuser", "default", test.rights).Err(); err != nil {
				t.Fatal(err)
			}
			limiter, log, call := watched(t, server)
			call()
			limiter.Close() // it waits for the watch in the background
			if n := log.Count("level=WARN", "maxmemory-policy=allkeys-lru", "set maxmemory-policy noeviction"); n != test.want {
				t.Errorf("%d lines: %s", n, log.String())
			}
		})
	}
}
