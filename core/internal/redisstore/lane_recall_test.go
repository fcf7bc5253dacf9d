package redisstore_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

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

// subjects returns the different subjects of so many callers.
func subjects(callers int, of func(caller int) string) (all []string) {
	seen := map[string]bool{}
	for i := range callers {
		if s := of(i); !seen[s] {
			seen[s], all = true, append(all, s)
		}
	}
	return all
}
