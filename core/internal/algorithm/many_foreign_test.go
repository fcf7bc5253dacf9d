package algorithm_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// joinable returns a limit of each algorithm whose calls are decided together.
func joinable(t testing.TB) []algorithm.Limit {
	return slices.DeleteFunc(append(oneOfEach(t), bucket(t, 7, 3*hour, 7)), func(l algorithm.Limit) bool {
		return !algorithm.Joins([]algorithm.Counter{{Limit: &l, Cost: 1}})
	})
}

// neighbours are calls in one script. Some are on planted values, with or without another counter.
// Between them are calls on healthy counters.
type neighbours struct {
	*server
	t       *testing.T
	limit   *algorithm.Limit
	forms   []crowdForm
	planted map[string]string // the planted values, as DUMP writes them
}

func (n *neighbours) add(limit *algorithm.Limit, keys ...string) {
	var call []algorithm.Counter
	for _, key := range keys {
		call = append(call, algorithm.Counter{Key: []byte(key), Limit: limit, Cost: 1})
	}
	if last := len(n.forms) - 1; last >= 0 && algorithm.SameForm(n.forms[last].calls[0], call) {
		n.forms[last].calls = append(n.forms[last].calls, call)
		return
	}
	n.forms = append(n.forms, crowdForm{3, [][]algorithm.Counter{call}})
}

// surround plants values, and makes calls on them and around them.
func (s *server) surround(t *testing.T, l *algorithm.Limit, plants map[string]plant) *neighbours {
	t.Helper()
	n := &neighbours{server: s, t: t, limit: l, planted: make(map[string]string)}
	other := algorithm.Windowed(algorithm.FixedWindow, 9, second)
	ctx := context.Background()
	pipe := s.Pipeline()
	pipe.FlushDB(ctx)
	dumps := make(map[string]*redis.StringCmd)
	plantAt := func(put plant, key string) {
		put(pipe, key)
		dumps[key] = pipe.Dump(ctx, key)
	}
	for i := range 3 {
		used := one(fmt.Sprint("used up ", i), l, early, l.Max)
		used.queue(pipe, s.sha(timed, algorithm.DecideScript(used.counters)))
	}
	for _, what := range slices.Sorted(maps.Keys(plants)) {
		put := plants[what]
		plantAt(put, what)
		n.add(l, what)
		n.add(&other, "healthy "+what)
		plantAt(put, "second "+what)
		n.add(l, "first beside "+what, "second "+what)
		plantAt(put, "third "+what)
		n.add(l, "third "+what, "fourth beside "+what)
	}
	for i, what := range slices.Sorted(maps.Keys(plants))[:min(3, len(plants))] {
		plantAt(plants[what], "unused "+what)
		n.add(l, fmt.Sprint("used up ", i), "unused "+what)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for key, dump := range dumps {
		n.planted[key] = dump.Val()
	}
	return n
}

// run decides all calls in one script, and returns the replies by key.
func (n *neighbours) run() map[string]any {
	n.t.Helper()
	ctx := context.Background()
	keys, argv := manyArgs(n.forms)
	sha := n.sha(timed, algorithm.ManyScript(kindsOf(n.forms)))
	replies, err := n.EvalSha(ctx, sha, keys, append(argv, int64(early))...).Slice()
	if err != nil || len(replies) != len(keys) {
		n.t.Fatalf("%s: %d replies for %d keys, %v", n.limit.Kind.Tag(), len(replies), len(keys), err)
	}
	all := make(map[string]any)
	for i, key := range keys {
		all[key] = replies[i]
	}
	return all
}

// wantAlone checks that the script leaves the calls on planted values to scripts of their own and
// does nothing for them, and that it decides and charges all other calls.
func (n *neighbours) wantAlone(replies map[string]any) {
	n.t.Helper()
	ctx, pipe := context.Background(), n.Pipeline()
	after, lives := make(map[string]*redis.StringCmd), make(map[string]*redis.DurationCmd)
	for key := range replies {
		after[key], lives[key] = pipe.Dump(ctx, key), pipe.PTTL(ctx, key)
	}
	_, _ = pipe.Exec(ctx)
	for key, reply := range replies {
		before, planted := n.planted[key]
		switch {
		case strings.HasPrefix(key, "healthy "):
			if reply == int64(-1) || after[key].Err() != nil || lives[key].Val() <= 0 {
				n.t.Errorf("%s: %s is answered with %v, and its key is %q", n.limit.Kind.Tag(), key, reply, after[key].Val())
			}
		case reply != int64(-1):
			n.t.Errorf("%s: %s is answered with %q", n.limit.Kind.Tag(), key, reply)
		case planted && after[key].Val() != before:
			n.t.Errorf("%s: %s was %q, and is %q", n.limit.Kind.Tag(), key, before, after[key].Val())
		case strings.Contains(key, " beside ") && after[key].Err() != redis.Nil:
			n.t.Errorf("%s: %s was charged, but not all of its call", n.limit.Kind.Tag(), key)
		}
	}
}

// If a key holds a value of any type that is no counter, the script does nothing for the call on
// that key, and leaves it to a script of its own. It decides all other calls.
func TestForeignValuesAmongMany(t *testing.T) {
	s := startServer(t)
	for _, l := range joinable(t) {
		n := s.surround(t, &l, foreign())
		n.wantAlone(n.run())
	}
}

// The same holds for uncommon states of a counter: those of another rate, of several rates, and
// those written before the clock stepped back.
func TestUncommonStatesAmongMany(t *testing.T) {
	s := startServer(t)
	for _, l := range joinable(t) {
		later := one("counter", &l, early+hour, 1)
		plants := map[string]plant{"later": s.asState(later)}
		if l.Kind == algorithm.TokenBucket {
			slower := bucket(t, 1, l.Window, 9)
			plants["slower"] = s.asState(one("counter", &slower, early, 1))
			plants["two rates"] = s.asState(one("counter", &slower, early, 1), one("counter", &l, early, 1))
		}
		n := s.surround(t, &l, plants)
		n.wantAlone(n.run())
	}
}

// A call whose cost can never fit is refused like any other. Package core makes no such call.
func TestCostThatNeverFitsAmongMany(t *testing.T) {
	s := startServer(t)
	for _, l := range joinable(t) {
		n := s.surround(t, &l, nil)
		n.forms = []crowdForm{{1, [][]algorithm.Counter{{{Key: []byte("counter"), Limit: &l, Cost: l.Max + 1}}}}}
		if reply := n.run()["counter"]; reply == algorithm.Uncommon || s.Exists(context.Background(), "counter").Val() != 0 {
			t.Errorf("%s: %q", l.Kind.Tag(), reply)
		}
	}
}

// asState returns a plant of the state of a counter after these calls.
func (s *server) asState(calls ...ask) plant {
	s.t.Helper()
	ctx := context.Background()
	s.FlushDB(ctx)
	for _, call := range calls {
		s.decide(timed, call)
	}
	state := s.Get(ctx, "counter").Val()
	return func(pipe redis.Pipeliner, key string) { pipe.Set(ctx, key, state, 0) }
}

// No string in place of a counter makes a fast function raise an error, which would fail all calls
// of a script. Each call is answered within its limit, or left to a script of its own.
func TestNoStringFailsManyCalls(t *testing.T) {
	s := startServer(t)
	fills := []string{"\x00", "\x01", "\x05", "\x1f", "\x20", "\xff", "Text9", "\x00\xff", "nan", "-inf", "1e400"}
	for _, l := range joinable(t) {
		state := s.asText(s.asState(one("counter", &l, early, 3)))
		for i := range state { // each length has a state's beginning
			fills = append(fills, state[:i]+"\xff", state[:i]+"\x00", state[:i+1])
		}
	}
	for _, l := range joinable(t) {
		for length := 1; length < 120; length += 6 {
			plants := make(map[string]plant)
			for i, fill := range fills {
				text := strings.Repeat(fill, 120)[:length+i%6]
				plants[fmt.Sprint(i)] = func(pipe redis.Pipeliner, key string) { pipe.Set(context.Background(), key, text, 0) }
			}
			n := s.surround(t, &l, plants)
			n.wantWithin(n.run())
		}
	}
}

// asText returns the text that a plant writes.
func (s *server) asText(put plant) string {
	ctx := context.Background()
	pipe := s.Pipeline()
	put(pipe, "planted")
	_, _ = pipe.Exec(ctx)
	return s.Get(ctx, "planted").Val()
}

// wantWithin checks that each call is answered within its limit, or is left to a script of its own
// with nothing done for it.
func (n *neighbours) wantWithin(replies map[string]any) {
	n.t.Helper()
	for _, f := range n.forms {
		for _, counters := range f.calls {
			var texts []string
			for _, c := range counters {
				texts = append(texts, fmt.Sprint(replies[string(c.Key)]))
			}
			found := make([]algorithm.Found, len(counters))
			if slices.Contains(texts, algorithm.Uncommon) {
				if slices.ContainsFunc(texts, func(text string) bool { return text != algorithm.Uncommon }) {
					n.t.Errorf("%s: one call is answered with %q", counters[0].Key, texts)
				}
				continue
			}
			if err := algorithm.ReadMany(texts, counters, f.asked(), found); err != nil {
				continue // a state whose parts contradict each other
			}
			for i := range counters {
				var v algorithm.Verdict
				found[i].Nth(&counters[i], 0, found[i].Fit(&counters[i], f.asked()), &v)
				if v.Remaining < 0 || v.Remaining > counters[i].Limit.Max || v.RetryAfter < 0 || v.ResetAfter < 0 {
					n.t.Errorf("%s: %+v", counters[i].Key, v)
				}
			}
		}
	}
}
