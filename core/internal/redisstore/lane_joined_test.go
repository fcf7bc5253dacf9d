package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// bothWays runs a test with a store whose scripts have the keys of one call, and with one whose
// scripts have those of several.
func bothWays(t *testing.T, test func(t *testing.T, server *redistest.Server, s store)) {
	t.Run("keys of one call", func(t *testing.T) {
		server, client := startOne(t)
		s := newStore(t, client, patient)
		s.JoinKeys("")
		test(t, server, s)
	})
	t.Run("keys of several calls", func(t *testing.T) {
		server := redistest.Start(t)
		p := startKeyProxy(t, toOne(server))
		s := newStore(t, p.client(t), patient)
		keepUsing(t, "scripts have the keys of several calls", s, p.joins)
		wantSoon(t, "it is proved that one server holds all keys", s.Prove)
		before := p.scripts().joined
		test(t, server, s)
		if p.scripts().joined == before {
			t.Error("no script had the keys of several calls")
		}
	})
}

// joining starts a server behind a proxy, and a store with this timeout. It returns when a script
// of the store has had the keys of several calls.
func joining(t *testing.T, within time.Duration) (*redistest.Server, *keyProxy, *redis.Client, store) {
	t.Helper()
	server := redistest.Start(t)
	p := startKeyProxy(t, toOne(server))
	client := p.client(t, func(o *redis.Options) { o.MinIdleConns = 6 }, endlessly)
	s := newStore(t, client, within)
	m := mixOf(t, t.Name()+" warm", 128, 1000)
	m.limits = []*algorithm.Limit{daily(t, 1000)} // so that the server knows the script with this algorithm only
	wantSoon(t, "scripts have the keys of several calls", func() bool {
		m.use(t, s, 1, true)
		return p.joins() && s.Prove()
	})
	return server, p, client, s
}

// A server that hangs delays no call past its deadline, whether that is the caller's or Timeout.
// The breaker opens. The calls that the server executes when it continues are charged at most once.
func TestSeveralCallsOfAScriptReturnInTime(t *testing.T) {
	server, p, client, s := joining(t, timeout)
	limit, before := daily(t, 100), p.scripts().joined
	key := func(i int) algorithm.Counter { return counter(fmt.Sprint("key", i), limit) }
	server.Stop()
	together(callers, func(i int) { s.takeInTime(t, i%2 == 0, key(i)) })
	if p.scripts().joined == before {
		t.Error("no script had the keys of several calls")
	}
	wantSoon(t, "the breaker is open", func() bool {
		v := s.take(context.Background(), counter("breaker", limit))[0]
		return v.Err != nil && strings.Contains(v.Err.Error(), "not asked")
	})
	together(callers, func(i int) { s.take(context.Background(), counter(fmt.Sprint("not asked", i), limit)) })
	server.Continue()
	before = p.scripts().joined
	m := mixOf(t, t.Name(), 128, 1000)
	wantSoon(t, "scripts have the keys of several calls again", func() bool {
		m.use(t, s, 1, true)
		return p.scripts().joined > before+10
	})
	deployment{servers: []*redistest.Server{server}}.proceed(t, client)
	after := newStore(t, server.Client(t), patient)
	for i := range callers {
		if left := after.left(t, key(i)); left < 99 {
			t.Errorf("one call on %s was charged %d times", key(i).Key, 100-left)
		}
		if left := after.left(t, counter(fmt.Sprint("not asked", i), limit)); left < 99 {
			t.Errorf("number %d was charged %d times while the breaker was open", i, 100-left)
		}
	}
}

// holdOnlyConnection occupies the one connection of a client's pool, and returns a function that
// frees it.
func holdOnlyConnection(t *testing.T, server *redistest.Server, client *redis.Client) (free func()) {
	t.Helper()
	operator := server.Client(t)
	go client.BLPop(context.Background(), patient, "held")
	held := func() bool {
		list, err := operator.ClientList(context.Background()).Result()
		return err == nil && strings.Contains(list, "cmd=blpop")
	}
	if !redistest.WaitUntil(held, patient) {
		t.Fatal("the connection is not held")
	}
	return func() {
		if err := operator.RPush(context.Background(), "held", "go on").Err(); err != nil {
			t.Error(err)
		}
	}
}

// A call whose time ends while its pipeline waits for a connection is told that it was not sent. When
// the connection comes later, the pipeline leaves without it.
func TestCallsToldOfNoConnectionAreNotSent(t *testing.T) {
	server, client := startOne(t, func(o *redis.Options) { o.PoolSize = 1 })
	const timeout, callers = 400 * time.Millisecond, 120
	limit := daily(t, 1000)
	for name, subject := range map[string]func(caller int) string{
		"one subject":   func(int) string { return "alice" },
		"many subjects": func(caller int) string { return string(rune('a' + caller%20)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, client, timeout)
			free := holdOnlyConnection(t, server, client)
			var told, doubtful atomic.Int64
			together(callers, func(i int) {
				// One after the other, so that those of one pipeline end one after the other.
				time.Sleep(time.Duration(i) * 3 * timeout / callers)
				if i == callers/2 { // the second pipeline waits, and some of its calls have ended
					free()
				}
				switch v := s.take(context.Background(), counter(t.Name()+subject(i), limit))[0]; {
				case passes(v):
					told.Add(1)
				case failure.ClassOf(v.Err).MayHaveCharged():
					doubtful.Add(1)
				}
			})
			used, patiently := int64(0), newStore(t, client, patient)
			for _, c := range subjects(callers, subject) {
				used += limit.Max - patiently.left(t, counter(t.Name()+c, limit))
			}
			if used < told.Load() || used > told.Load()+doubtful.Load() {
				t.Errorf("%d charged; %d were told so, and %d that it may be", used, told.Load(), doubtful.Load())
			}
		})
	}
}

// subjects returns a different subject for each caller.
func subjects(callers int, of func(caller int) string) (all []string) {
	seen := map[string]bool{}
	for i := range callers {
		if s := of(i); !seen[s] {
			seen[s], all = true, append(all, s)
		}
	}
	return all
}
