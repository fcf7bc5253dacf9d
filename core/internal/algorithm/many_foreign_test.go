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
