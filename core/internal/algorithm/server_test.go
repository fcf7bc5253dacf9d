package algorithm_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// timed returns the text of a script that takes the time from its last argument instead of Redis's
// clock.
func timed(t testing.TB, script *algorithm.Script) string {
	t.Helper()
	text, err := scriptclock.TakeTime(script.Text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// expiring is timed, but the script first drops every key whose time to live is over at that time.
func expiring(t testing.TB, script *algorithm.Script) string {
	t.Helper()
	text, err := scriptclock.TakeTimeAndExpire(script.Text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// server is a Redis that decides calls at times that the test chooses.
type server struct {
	*redis.Client
	t      testing.TB
	loaded map[*algorithm.Script]string // by their names, in the one form that a test plays
}

func startServer(t testing.TB) *server {
	t.Helper()
	client := redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }) // for thousands of commands at once
	return &server{client, t, make(map[*algorithm.Script]string)}
}

// ask is one call: its counters, when it is made, and whether it may charge.
type ask struct {
	now      int64
	charge   bool
	counters []algorithm.Counter
}

// args are the whole arguments of decide.lua for this call. The time that a timed script reads
// follows at the end.
func (a *ask) args() (keys []string, argv []any) {
	for i := range a.counters {
		keys = append(keys, string(a.counters[i].Key))
	}
	return keys, append(algorithm.AppendDecide(nil, a.counters, a.charge, a.now), a.now)
}

// queue adds a decision to a pipeline.
func (a *ask) queue(pipe redis.Pipeliner, sha string) *redis.Cmd {
	keys, argv := a.args()
	return pipe.EvalSha(context.Background(), sha, keys, argv...)
}

// load makes a script known to the server.
func (s *server) load(text string) (sha string) {
	s.t.Helper()
	sha, err := s.ScriptLoad(context.Background(), text).Result()
	if err != nil {
		s.t.Fatalf("the server does not take the script: %v", err)
	}
	return sha
}

// sha makes a script known to the server, once.
func (s *server) sha(as form, script *algorithm.Script) string {
	s.t.Helper()
	if s.loaded[script] == "" {
		s.loaded[script] = s.load(as(s.t, script))
	}
	return s.loaded[script]
}

// decide runs one decision, by the script's text in this form.
func (s *server) decide(as form, a ask) []algorithm.Verdict {
	s.t.Helper()
	pipe := s.Pipeline()
	cmd := a.queue(pipe, s.load(as(s.t, algorithm.DecideScript(a.counters))))
	_, _ = pipe.Exec(context.Background())
	return s.verdicts(cmd, a)
}

// verdicts reads what decide.lua replied.
func (s *server) verdicts(cmd *redis.Cmd, a ask) []algorithm.Verdict {
	s.t.Helper()
	verdicts := make([]algorithm.Verdict, len(a.counters))
	reply, err := cmd.Slice()
	if err == nil {
		err = algorithm.ReadDecided(reply, a.counters, a.charge, verdicts)
	}
	if err != nil || verdicts[0].At != a.now {
		s.t.Fatalf("decided at %d: %v, %v", a.now, reply, err)
	}
	return verdicts
}

// giveBack runs give_back.lua for what was charged, and returns how many counters it changed.
func (s *server) giveBack(charged algorithm.Verdict, a ask) int64 {
	s.t.Helper()
	charges := []algorithm.Charge{a.counters[0].Charged(&charged)}
	argv := append(algorithm.AppendGiveBack(nil, charges), a.now)
	script := timed(s.t, algorithm.GiveBackScript(charges))
	changed, err := s.Eval(context.Background(), script, []string{string(charges[0].Key)}, argv...).Int64Slice()
	if err != nil || len(changed) != 2 {
		s.t.Fatalf("given back at %d: %v, %v", a.now, changed, err)
	}
	return changed[0]
}

// state returns the bytes that a key holds, or "" if there is none.
func (s *server) state(key string) string {
	s.t.Helper()
	state, err := s.Dump(context.Background(), key).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("DUMP %s: %v", key, err)
	}
	return state
}

// one returns a call on one counter.
func one(key string, limit *algorithm.Limit, now, cost int64) ask {
	return ask{now, true, []algorithm.Counter{{Key: []byte(key), Limit: limit, Cost: cost}}}
}
