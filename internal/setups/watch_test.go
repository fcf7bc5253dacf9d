package setups_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// watched returns a limiter, its log, and a function that makes a call.
func watched(t *testing.T, server *redistest.Server, change ...func(*redis.Options)) (limiter *core.Limiter, log *logtest.Log, call func()) {
	log = new(logtest.Log)
	limiter = newLimiter(t, core.Options{Redis: server.Client(t, change...), Logger: log.Logger()})
	return limiter, log, func() { _, _ = limiter.MustCounter("n", core.PerSecond(1000)).Allow(background, "s") }
}

// marked makes calls until a server has its mark, so that the limiter notices when it is lost.
func marked(t *testing.T, server *redistest.Server, call func()) {
	t.Helper()
	eventually(t, "the server has its mark", func() bool {
		call()
		return server.Client(t).Exists(background, markKey).Val() == 1
	})
}

// If a server is killed and comes back empty, the log and Stats show that it did not answer, that
// it answers again, and what it has lost.
func TestALostRedisIsReported(t *testing.T) {
	server := redistest.Start(t)
	limiter, log, call := watched(t, server)
	for losses := range uint64(2) {
		marked(t, server, call)
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
		log.Count("level=ERROR", "Redis has lost data", "counters, the audit", "lost=everything", "another server process", "publish the document again", "addr="+server.Addr()) == 0 {
		t.Error(log.String())
	}
}

// A server that was restarted with all of its data, or that lost its scripts, has lost nothing.
func TestARedisThatKeptItsDataIsNotLost(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	limiter, log, call := watched(t, server)
	for range 2 {
		marked(t, server, call)
		server.Client(t).ScriptFlush(background)
		server.Restart()
		asked := server.Calls("info") // this test's own questions count too
		eventually(t, "the new process is known", func() bool {
			call()
			asked++
			return server.Calls("info") > asked
		})
	}
	limiter.Close() // it waits for the watch in the background
	if s := limiter.Stats(); s.Losses != 0 || log.Count("lost") != 0 {
		t.Errorf("%+v, %s", s, log.String())
	}
}

// A server whose keys were removed while it ran has lost everything, though its run_id is the same.
// One that goes back to older data has lost the latest writes. The processes record each loss once.
func TestLossesWithoutARestart(t *testing.T) {
	for want, lose := range map[string]func(*redis.Client) error{
		"lost=everything": func(c *redis.Client) error { return c.FlushAll(background).Err() },
		"lost=\"what was written since 1970-01-01T00:00:00Z\"": func(c *redis.Client) error {
			id, _, _ := strings.Cut(c.Get(background, markKey).Val(), " ")
			return c.Set(background, markKey, id+" 0 0", 0).Err()
		},
		"lost=\"the latest writes; since when is not known\"": func(c *redis.Client) error { // another process has renewed the mark
			id, _, _ := strings.Cut(c.Get(background, markKey).Val(), " ")
			return c.Set(background, markKey, fmt.Sprint(id, " 0 ", c.Time(background).Val().Unix()), 0).Err()
		},
	} {
		server := redistest.Start(t)
		limiter, log, call := watched(t, server)
		other, _, callByOther := watched(t, server)
		marked(t, server, call)
		marked(t, server, callByOther)
		eventually(t, "the other process has seen the mark", func() bool { callByOther(); return server.Calls("info") >= 2 })
		if err := lose(server.Client(t)); err != nil {
			t.Fatal(err)
		}
		server.Client(t).ScriptFlush(background) // so that the server is looked at now
		eventually(t, "the loss is found", func() bool { call(); return limiter.Stats().Losses == 1 })
		if want == "lost=everything" { // otherwise the first process has renewed the mark already
			eventually(t, "the other process finds it too", func() bool { callByOther(); return other.Stats().Losses == 1 })
		}
		limiter.Close()
		if log.Count("level=ERROR", "Redis has lost data", want, "the same server process") != 1 {
			t.Errorf("%s: %s", want, log.String())
		}
		other.Close() // both have recorded what they found
		reader := newLimiter(t, core.Options{Redis: server.Client(t)})
		lost, err := operate.New(reader).Losses(background)
		if err != nil || len(lost) != 1 || lost[0].Server != server.Addr() || !strings.Contains(want, lost[0].Lost) || !strings.Contains(lost[0].How, "FLUSHALL") || time.Since(lost[0].Time) > patient {
			t.Errorf("%s: recorded are %+v, %v", want, lost, err)
		}
	}
}

// A server that may evict any key has lost nothing if its mark is gone, even if that was set up after
// the server was looked at.
func TestAnEvictedMarkIsNoLoss(t *testing.T) {
	server := redistest.Start(t)
	limiter, log, call := watched(t, server)
	marked(t, server, call)
	eventually(t, "the server was looked at", func() bool { call(); return server.Calls("info") > 1 })
	client := server.Client(t)
	if err := errors.Join(client.ConfigSet(background, "maxmemory", "100mb").Err(),
		client.ConfigSet(background, "maxmemory-policy", "allkeys-lru").Err(), client.Del(background, markKey).Err()); err != nil {
		t.Fatal(err)
	}
	client.ScriptFlush(background) // so that the server is looked at now
	marked(t, server, call)
	limiter.Close()
	if log.Count("lost data") != 0 {
		t.Error(log.String())
	}
}

// A replica that takes the place of its master has the data, so nothing is lost.
func TestAFailoverLosesNothing(t *testing.T) {
	sentinel := redistest.StartSentinel(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: sentinel.Client(t), Logger: log.Logger()})
	call := func() { _, _ = limiter.MustCounter("n", core.PerSecond(1000)).Allow(background, "s") }
	for _, node := range sentinel.Nodes() { // the replica has it too
		marked(t, node, call)
	}
	sentinel.FailOver(t)
	eventually(t, "the replica decides", func() bool {
		call()
		return sentinel.Master(t) == sentinel.Nodes()[1].Addr() && sentinel.Nodes()[1].Calls("info") > 0 && limiter.Stats().Shards[0].Breaker == "closed"
	})
	limiter.Close()
	if n := limiter.Stats().Losses; n != 0 || log.Count("lost data") != 0 {
		t.Errorf("%d losses: %s", n, log.String())
	}
}

// Each server of a ring, and each master of a cluster, is watched by itself.
func TestEachServerIsWatched(t *testing.T) {
	ring, cluster := redistest.StartRing(t, 2), redistest.StartCluster(t)
	for name, test := range map[string]struct {
		client redis.UniversalClient
		nodes  []*redistest.Server
	}{"ring": {ring.Client(t), ring.Nodes()}, "cluster": {cluster.Client(t), cluster.Nodes()}} {
		limiter := newLimiter(t, core.Options{Redis: test.client})
		call := func() {
			for i := range 50 {
				_, _ = limiter.MustCounter("n", core.PerSecond(1000)).Allow(background, fmt.Sprint(i))
			}
		}
		marks := func(of *redistest.Server) int { return len(of.Client(t).Keys(background, "*{%mark*").Val()) }
		for _, node := range test.nodes {
			eventually(t, name+" has its marks", func() bool { call(); return marks(node) == 1 })
		}
		lost := test.nodes[1].Client(t)
		lost.FlushAll(background)
		lost.ScriptFlush(background)
		eventually(t, name+": the loss is found", func() bool { call(); return limiter.Stats().Losses > 0 })
		limiter.Close()
		if n := limiter.Stats().Losses; n != 1 {
			t.Errorf("%s: %d losses", name, n)
		}
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
