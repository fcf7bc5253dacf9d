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

// op is what a store is asked.
func (a *ask) op() *algorithm.Op {
	op := algorithm.Op{Counters: a.counters, Calls: 1}
	if a.charge {
		op.Mode = algorithm.AllOrNone
	}
	return &op
}

// keysOf returns the keys of an op: those of its counters, and behind them that of its record.
func keysOf(o *algorithm.Op) (keys []string) {
	for i := range o.Counters {
		keys = append(keys, string(o.Counters[i].Key))
	}
	if record := o.Recorded(); record != nil {
		keys = append(keys, string(record))
	}
	return keys
}

// args are the whole arguments of the script for this call. The time that a timed script reads
// follows at the end.
func (a *ask) args() (keys []string, argv []any) {
	return keysOf(a.op()), append(a.op().Append(nil, a.now), a.now)
}

// queue adds a decision to a pipeline.
func (s *server) queue(pipe redis.Pipeliner, as form, a ask) *redis.Cmd {
	s.t.Helper()
	keys, argv := a.args()
	return pipe.EvalSha(context.Background(), s.sha(as, a.op().Script()), keys, argv...)
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
	keys, argv := a.args()
	cmd := pipe.EvalSha(context.Background(), s.load(as(s.t, a.op().Script())), keys, argv...)
	_, _ = pipe.Exec(context.Background())
	return s.verdicts(cmd, a)
}

// readOp reads the reply to an op for one of several equal calls, of which some are ahead.
func readOp(o *algorithm.Op, reply any, ahead, all int64) (now int64, verdicts []algorithm.Verdict, err error) {
	texts := scriptclock.Texts(reply)
	if now, err = algorithm.ReadTime(texts); err != nil {
		return 0, nil, err
	}
	verdicts = make([]algorithm.Verdict, len(o.Counters))
	_, err = o.Read(texts[1:], now, ahead, all, verdicts, make([]algorithm.Found, len(o.Counters)))
	return now, verdicts, err
}

// verdicts reads what a script replied to a decision.
func (s *server) verdicts(cmd *redis.Cmd, a ask) []algorithm.Verdict {
	s.t.Helper()
	_, verdicts, err := readOp(a.op(), cmd.Val(), 0, 1)
	if err != nil || verdicts[0].At != a.now {
		s.t.Fatalf("decided at %d: %v, %v", a.now, cmd, err)
	}
	return verdicts
}

// giveBack gives back what was charged, and reports whether that changed the counter.
func (s *server) giveBack(charged algorithm.Verdict, a ask) (changed bool) {
	s.t.Helper()
	c := algorithm.Change{Charges: []algorithm.Charge{a.counters[0].Charged(&charged)}}
	key := string(c.KeyAt(0))
	before := s.state(key)
	if err := s.Eval(context.Background(), timed(s.t, c.Script()), []string{key}, append(c.Append(nil, a.now), a.now)...).Err(); err != nil {
		s.t.Fatalf("given back at %d: %v", a.now, err)
	}
	return s.state(key) != before
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
