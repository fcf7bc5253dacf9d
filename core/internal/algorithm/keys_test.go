package algorithm_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// noExpiry is Redis's answer for a key without a time to live. For a key that does not exist, it is
// -2.
const noExpiry = -1

// lifetime returns the longest time that a key of this limit may live after a write.
func lifetime(l *algorithm.Limit) int64 {
	switch {
	case l.Kind == algorithm.TokenBucket:
		return (l.Max*l.Permit/l.Refill + 1) * l.Tick
	case l.Window == 0: // a calendar: two months at most
		return 62*day + hour
	default:
		return 2 * l.Window
	}
}

// kept is a key after a step.
type kept struct {
	state   *redis.StringCmd
	expires *redis.Cmd // in milliseconds
}

func (k kept) same(other kept) bool {
	return k.state.Val() == other.state.Val() && k.expires.Val() == other.expires.Val()
}

// keeper reads all keys of a trace after every step.
type keeper struct {
	*caller
	after []map[string]kept
}

func (k *keeper) look(pipe redis.Pipeliner, _ step) {
	keys, ctx := make(map[string]kept), context.Background()
	for _, m := range append(k.members, k.others...) {
		keys[m.key] = kept{pipe.Dump(ctx, m.key), scriptclock.ExpireTime(ctx, pipe, m.key)}
	}
	k.after = append(k.after, keys)
}

// check checks one key after a step.
func (k *keeper) check(i int, m *member) {
	of, now := k.steps[i], k.after[i][m.key]
	expires, err := now.expires.Int64()
	if err != nil || expires == noExpiry {
		k.Fatalf("%s\n%s expires %v, %v", k.story(i), m.key, expires, err)
	}
	written := now.state.Err() != redis.Nil
	if i > 0 {
		written = !now.same(k.after[i-1][m.key])
	}
	if written && !slices.Contains(of.writes, m.key) {
		k.Fatalf("%s\nit changed %s", k.story(i), m.key)
	}
	if at := slices.Index(of.keys, m.key); i > 0 && at >= 0 && strings.HasPrefix(of.said, "look") {
		k.checkExpiry(i, m, expires*1000, of.now+of.want[3+4*at].(int64))
	}
}

// checkExpiry checks that a key lives as long as its state differs from a fresh one, and not much
// longer.
func (k *keeper) checkExpiry(i int, m *member, expires, freshAt int64) {
	of := k.steps[i]
	if freshAt > of.now && expires < freshAt {
		k.Fatalf("%s\n%s expires at %d, its state counts until %d", k.story(i), m.key, expires, freshAt)
	}
	latest := of.now + lifetime(m.limit)
	switch {
	case m.limit.Kind == algorithm.TokenBucket:
		latest = max(freshAt, of.now) + m.limit.Tick // debts included
	case !k.isBehind(i):
		latest = max(freshAt, of.now) + m.limit.Window/32
	}
	if slices.Contains(k.steps[i-1].writes, m.key) && expires > latest+millisecond {
		k.Fatalf("%s\n%s expires at %d, its state counts until %d", k.story(i), m.key, expires, freshAt)
	}
}

// isBehind reports whether the clock is behind where it was before a step, so that the state may have a
// later time than now.
func (k *keeper) isBehind(i int) bool {
	return slices.ContainsFunc(k.steps[:i], func(s step) bool { return s.now > k.steps[i].now })
}

// A call that is refused or only looks writes nothing: no key, no byte of a state, no time to live.
// Every write sets a time to live: the key lives as long as its state differs from a fresh one.
func TestKeysOverAnyTrace(t *testing.T) {
	s := startServer(t)
	eachFamily(t, func(t *rapid.T, from []family) {
		k := keeper{caller: newCaller(t, false, from)}
		k.steady()
		for range several(t) {
			k.step()
		}
		k.run(t, s, timed, k.look)
		for i := range k.steps {
			for _, m := range append(k.members, k.others...) {
				k.check(i, m)
			}
		}
	})
}

// A sliding window whose sum is more than its parts is no state of ours, and is not deleted.
func TestRefundOfAWrongSum(t *testing.T) {
	s, ctx, limit := startServer(t), t.Context(), algorithm.Windowed(algorithm.SlidingWindow, 10, second)
	counter := algorithm.Counter{Key: []byte("sum"), Limit: &limit, Cost: 1}
	s.decide(timed, one("sum", &limit, early, 1))
	sound := s.Get(ctx, "sum").Val()
	wrong := sound[:7] + "\x05" + sound[8:]
	if err := s.Set(ctx, "sum", wrong, 0).Err(); err != nil {
		t.Fatal(err)
	}
	c := algorithm.Change{Charges: []algorithm.Charge{counter.Charged(&algorithm.Verdict{At: early, Taken: 1, Position: early})}}
	err := s.Eval(ctx, timed(t, c.Script()), []string{"sum"}, append(c.Append(nil, early), int64(early))...).Err()
	if err == nil || !strings.Contains(err.Error(), "NOTACOUNTER") || s.Get(ctx, "sum").Val() != wrong {
		t.Errorf("%v; the state is %q, was %q", err, s.Get(ctx, "sum").Val(), wrong)
	}
}

// expires returns when a key expires, in milliseconds.
func (s *server) expires(key string) int64 {
	s.t.Helper()
	at, err := scriptclock.ExpireTime(context.Background(), s, key).Int64()
	if err != nil {
		s.t.Fatalf("when does %s expire? %v", key, err)
	}
	return at
}

// A key that lost its time to live has one again when a slot is given back or renewed.
func TestSlotsWithoutTimeToLive(t *testing.T) {
	s := startServer(t)
	limit := algorithm.Windowed(algorithm.Concurrency, 5, second)
	persist := &algorithm.Script{Text: scriptclock.Lines + "return {redis.call('PERSIST', KEYS[1])}"}
	for name, write := range map[string]func(*engines, algorithm.Charge){
		"give back": func(e *engines, slot algorithm.Charge) { e.giveBack(slot) },
		"renew":     func(e *engines, slot algorithm.Charge) { e.renew(slot) },
	} {
		e := newEngines(early)
		for _, holder := range []string{"a", "b"} {
			e.decide(true, early, []algorithm.Counter{{Key: []byte("slots"), Limit: &limit, Cost: 1, Mark: holder}})
		}
		e.add(step{script: persist, keys: []string{"slots"}, want: []any{int64(1)}})
		write(e, algorithm.Charge{Key: []byte("slots"), Limit: &limit, Cost: 1, Mark: "a"})
		e.run(t, s, timed, nil)
		if got := s.expires("slots") * 1000; got < early+second || got > early+second+millisecond {
			t.Errorf("%s: the key expires at %d", name, got)
		}
	}
}
