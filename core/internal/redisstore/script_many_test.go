package redisstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// untilJoined calls a function until many scripts have decided calls on different keys. Only those
// scripts call MGET, and the proofs that one server holds all keys, of which there are few: one for
// each new connection.
func untilJoined(t *testing.T, server *redistest.Server, do func()) {
	t.Helper()
	before := server.Calls("mget")
	if !redistest.WaitUntil(func() bool { do(); return server.Calls("mget")-before >= 20 }, patient) {
		t.Fatalf("%d scripts decided calls on different keys", server.Calls("mget")-before)
	}
}

// sharedKey is a counter of the model, with the charges on it.
type sharedKey struct {
	large, small *algorithm.Limit // each call counts under one of them
	key          []byte
	used         int64
	charges      []taken
}

// taken is a charge: its cost, and how much was used after it.
type taken struct{ after, cost int64 }

// model is four counters that callers use in all combinations, at different costs.
type model struct {
	mu   sync.Mutex
	keys []*sharedKey
}

func newModel(t *testing.T, most int64) *model {
	m := new(model)
	large, small := limits(t, most), limits(t, most/2)
	for i, name := range []string{"sliding window", "fixed window", "bucket", "sliding window"} {
		c := counter(fmt.Sprint(t.Name(), i), large[name])
		m.keys = append(m.keys, &sharedKey{large: large[name], small: small[name], key: c.Key})
	}
	return m
}

// draw returns a call on some of the counters, in any order, and the keys of those counters.
func (m *model) draw() (counters []algorithm.Counter, of []*sharedKey) {
	for _, at := range rand.Perm(len(m.keys))[:1+rand.IntN(len(m.keys))] {
		k := m.keys[at]
		of = append(of, k)
		c := algorithm.Counter{Key: k.key, Limit: k.large, Cost: 1 + rand.Int64N(3)}
		if rand.IntN(4) == 0 {
			c.Limit = k.small
		}
		counters = append(counters, c)
	}
	return counters, of
}

// note checks the answer to a call, and notes its charges.
func (m *model) note(t *testing.T, counters []algorithm.Counter, of []*sharedKey, verdicts []algorithm.Verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := algorithm.Passes(counters, verdicts)
	for i, v := range verdicts {
		c := &counters[i]
		switch {
		case v.Err != nil || v.Ended != nil:
			t.Errorf("%s: %+v", c.Key, v)
		case passed:
			of[i].used += c.Cost
			of[i].charges = append(of[i].charges, taken{c.Limit.Max - v.Remaining, c.Cost})
		case (v.RetryAfter > 0) != (v.Remaining < c.Cost):
			t.Errorf("%s, cost %d of %d, is refused with %+v", c.Key, c.Cost, c.Limit.Max, v)
		}
	}
}

// rounds returns how many calls each caller of a model makes.
func rounds() int {
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		return 400
	}
	return 20
}

// Calls on overlapping sets of four keys, at different costs and limits, are decided as if they
// came one after the other: the answers to the calls that passed form a sequence without gaps, and
// the sums are exact.
func TestModelOfFourKeys(t *testing.T) {
	server, client := startOne(t)
	s := newStore(t, client, patient)
	m := newModel(t, int64(crowd*rounds()))
	untilJoined(t, server, func() {
		together(crowd, func(int) {
			for range rounds() {
				counters, of := m.draw()
				m.note(t, counters, of, s.take(context.Background(), counters...))
			}
		})
	})
	for _, k := range m.keys {
		slices.SortFunc(k.charges, func(a, b taken) int { return cmp.Compare(a.after, b.after) })
		before := int64(0)
		for _, charge := range k.charges {
			if charge.after-charge.cost != before {
				t.Fatalf("%s: the answer to a call of cost %d shows %d used after it, and %d were used before it", k.key, charge.cost, charge.after, before)
			}
			before = charge.after
		}
		s.wantUsed(t, k)
	}
}

// wantUsed checks how much of a counter is used.
func (s store) wantUsed(t *testing.T, k *sharedKey) {
	t.Helper()
	if used := k.large.Max - s.left(t, algorithm.Counter{Key: k.key, Limit: k.large, Cost: 1}); used != k.used {
		t.Errorf("%s: %d are used of %d, and calls were charged %d", k.key, used, k.large.Max, k.used)
	}
	if k.used == 0 || k.used > k.large.Max {
		t.Errorf("%s: %d of %d were admitted", k.key, k.used, k.large.Max)
	}
}

// A key of another type fails every call that has it among its counters, even if another counter
// refuses the call. Such a call is charged to none of its counters. All other calls are exact.
func TestForeignKeyAmongMany(t *testing.T) {
	server, client := startOne(t)
	s := newStore(t, client, patient)
	m := newModel(t, 2000)
	foreign, full := counter("foreign", daily(t, 100)), counter("full", daily(t, 1))
	if err := client.LPush(context.Background(), string(foreign.Key), "x").Err(); err != nil {
		t.Fatal(err)
	}
	s.mustTake(t, full)
	untilJoined(t, server, func() {
		together(crowd, func(i int) {
			for range rounds() {
				counters, of := m.draw()
				if i%4 > 0 {
					m.note(t, counters, of, s.take(context.Background(), counters...))
					continue
				}
				if i%8 == 0 {
					counters = append(counters, full)
				}
				for _, v := range s.take(context.Background(), append(counters, foreign)...) {
					if !errors.Is(v.Err, redisstore.ErrForeign) || !strings.Contains(v.Err.Error(), string(foreign.Key)) {
						t.Errorf("%+v, want an error that names the key", v)
					}
				}
			}
		})
	})
	for _, k := range m.keys {
		s.wantUsed(t, k)
	}
}

// A script has at most 24 keys, so that it does not hold up the server's other clients for long.
func TestNoScriptHasTooManyKeys(t *testing.T) {
	server, client := startOne(t)
	s, other := newStore(t, client, patient), server.Client(t)
	ctx := context.Background()
	other.ConfigSet(ctx, "slowlog-log-slower-than", "0")
	other.ConfigSet(ctx, "slowlog-max-len", "10000")
	limit := daily(t, 1000)
	untilJoined(t, server, func() {
		together(crowd, func(i int) {
			for n := range 4 {
				s.take(ctx, counter(fmt.Sprint(i, " ", n), limit))
			}
		})
	})
	most := 0
	for _, call := range other.SlowLogGet(ctx, 10000).Val() {
		if call.Args[0] == "evalsha" {
			var keys int
			_, _ = fmt.Sscan(call.Args[2], &keys)
			most = max(most, keys)
		}
	}
	if most < 2 || most > 24 {
		t.Errorf("a script had %d keys", most)
	}
}

// Calls on one key at different costs cannot be joined, and each is decided by the quick script of
// its algorithm.
func TestUnequalCallsOnOneKeyGoAlone(t *testing.T) {
	server, client := startOne(t)
	s := newStore(t, client, patient)
	m := mixOf(t, t.Name(), 256, 1000)
	untilJoined(t, server, func() { m.use(t, s, 1, false) })
	one, before := counter("one", daily(t, 100_000)), server.Calls("mget")
	together(callers, func(i int) {
		for range rounds() {
			c := one
			c.Cost += int64(i)
			s.take(t.Context(), c)
		}
	})
	if many := server.Calls("mget") - before; many > rounds() {
		t.Errorf("%d scripts for several keys decided %d calls on one key", many, callers*rounds())
	}
}
