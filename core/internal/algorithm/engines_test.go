package algorithm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// engines holds both engines. This process takes each step at once, in the store that is used in
// production. Redis takes all steps at the end, in one round trip, and must give the same answers.
type engines struct {
	process *memstore.Store
	now     int64
	steps   []step
}

// step is one request to both engines.
type step struct {
	said   string // for messages
	script *algorithm.Script
	keys   []string
	argv   []any
	now    int64
	want   []any // what Redis must reply; nil: this process gives no answer to compare
	check  func(reply any) error
	writes []string // the keys that it may change
}

func newEngines(now int64) *engines {
	e := &engines{now: now}
	e.process = memstore.New(1000, func() int64 { return e.now })
	e.process.Close() // nothing is swept but what is asked for
	return e
}

func (e *engines) add(s step) {
	s.now = e.now
	e.steps = append(e.steps, s)
}

// decide decides over counters together. Redis receives the bounds of calendars at another time.
func (e *engines) decide(charge bool, at int64, counters []algorithm.Counter) []algorithm.Verdict {
	counters = slices.Clone(counters)
	for i := range counters {
		counters[i].ShowsDebt = true // as replies to looks do
	}
	verdicts, before := make([]algorithm.Verdict, len(counters)), make([]algorithm.Verdict, len(counters))
	e.process.Decide(context.Background(), counters, false, before)
	e.process.Decide(context.Background(), counters, charge, verdicts)
	s := step{script: algorithm.DecideScript(counters), argv: algorithm.AppendDecide(nil, counters, charge, at), want: []any{e.now}, said: "look"}
	if charge {
		s.said = "charge"
	}
	for i, c := range counters {
		s.keys = append(s.keys, string(c.Key))
		s.want = append(s.want, verdicts[i].RetryAfter, verdicts[i].Remaining, verdicts[i].ResetAfter, verdicts[i].Position)
		s.said += fmt.Sprintf(" %s max %d cost %d", c.Key, c.Limit.Max, c.Cost)
		charged := c.Charges() && before[i].RetryAfter == 0 && !before[i].Uncharged && algorithm.Passes(counters, before)
		if charge && charged {
			s.writes = append(s.writes, string(c.Key))
		}
	}
	for i := range verdicts {
		verdicts[i].Remaining = max(0, verdicts[i].Remaining)
	}
	e.add(s)
	return verdicts
}

// upTo charges as much of the counters' cost as fits, and stores that in their Cost.
func (e *engines) upTo(at int64, counters []algorithm.Counter) []algorithm.Verdict {
	s := step{script: algorithm.UpToScript(counters), argv: algorithm.AppendUpTo(nil, counters, at), said: "up to"}
	for i, c := range counters {
		s.keys = append(s.keys, string(c.Key))
		s.said += fmt.Sprintf(" %s max %d cost %d", counters[i].Key, c.Limit.Max, c.Cost)
	}
	verdicts := make([]algorithm.Verdict, len(counters))
	e.process.DecideUpTo(context.Background(), counters, verdicts)
	granted := counters[0].Cost
	if algorithm.Passes(counters, verdicts) {
		s.writes = s.keys
	} else {
		granted = 0
	}
	s.want = []any{e.now, granted}
	for _, v := range verdicts {
		s.want = append(s.want, v.RetryAfter, v.Remaining, v.ResetAfter, v.Position)
	}
	e.add(s)
	return verdicts
}

func (e *engines) reserve(c algorithm.Counter, patience int64) algorithm.Verdict {
	v := e.process.Reserve(context.Background(), &c, patience)
	s := step{
		said: fmt.Sprintf("reserve %s cost %d patience %d", c.Key, c.Cost, patience), script: algorithm.Reserve,
		keys: []string{string(c.Key)}, argv: algorithm.AppendReserve(nil, &c, patience), want: []any{e.now, v.RetryAfter, v.Remaining, v.ResetAfter, v.Wait, v.Position},
	}
	if v.RetryAfter == 0 && c.Cost > 0 {
		s.writes = s.keys
	}
	e.add(s)
	return v
}

func (e *engines) giveBack(charges ...algorithm.Charge) {
	before := e.process.RefundsLost()
	_ = e.process.GiveBack(context.Background(), charges)
	lost := int64(e.process.RefundsLost() - before)
	s := step{said: "give back", script: algorithm.GiveBackScript(charges), argv: algorithm.AppendGiveBack(nil, charges)}
	for i := range charges {
		s.keys = append(s.keys, string(charges[i].Key))
		s.said += fmt.Sprintf(" %s cost %d at %d", charges[i].Key, charges[i].Cost, charges[i].At)
	}
	s.writes = s.keys
	s.check = func(reply any) error {
		if got, ok := reply.([]any); !ok || len(got) != 2 || got[1] != lost {
			return fmt.Errorf("Redis lost %v, this process %d", reply, lost)
		}
		return nil
	}
	e.add(s)
}

func (e *engines) renew(slots ...algorithm.Charge) {
	_ = e.process.Renew(context.Background(), slots)
	s := step{script: algorithm.Renew, argv: algorithm.AppendRenew(nil, slots), want: []any{int64(len(slots))}}
	for _, slot := range slots {
		s.keys = append(s.keys, string(slot.Key))
	}
	s.writes, s.said = s.keys, fmt.Sprintf("renew %v for %q", s.keys, slots[0].Mark)
	e.add(s)
}

func (e *engines) records(key string, limit *algorithm.Limit) []algorithm.Record {
	records, _ := e.process.Records(context.Background(), []byte(key), limit)
	want := []any{}
	for _, r := range records {
		want = append(want, r.At, r.Cost, r.Note)
	}
	e.add(step{said: "records of " + key, script: algorithm.Records, keys: []string{key}, argv: algorithm.AppendRecords(nil, limit), want: want})
	return records
}

func (e *engines) pause(key string, p algorithm.Pause) (paused algorithm.Paused) {
	paused, _ = e.process.Pause(context.Background(), []byte(key), &p)
	longer := int64(0)
	if paused.Longer {
		longer = 1
	}
	e.add(step{
		said: fmt.Sprintf("pause %s: %+v", key, p), script: algorithm.BeginPause, keys: []string{key}, argv: algorithm.AppendPause(nil, &p),
		writes: []string{key}, want: []any{paused.Lasts, longer, paused.At},
	})
	return paused
}

func (e *engines) pauseOver(key string) {
	_ = e.process.PauseOver(context.Background(), []byte(key))
	e.add(step{said: "the pause of " + key + " is over", script: algorithm.PauseOver, keys: []string{key}, writes: []string{key}, want: []any{}})
}

func (e *engines) reset(key string) {
	_, _ = e.process.Reset(context.Background(), []byte(key))
	e.add(step{said: "reset " + key, script: &forget, keys: []string{key}, writes: []string{key}})
}

// forget is a script that does what Reset does in Redis. It ignores the clock.
var forget = algorithm.Script{Text: scriptclock.Lines + "return {now, redis.call('DEL', KEYS[1])}"}

// form returns the text of a script, prepared for a test.
type form func(testing.TB, *algorithm.Script) string

// run plays the steps in an empty Redis and compares every answer. After each step it calls closer
// unless closer is nil.
func (e *engines) run(t failer, s *server, as form, closer func(redis.Pipeliner, step)) {
	pipe, ctx := s.Pipeline(), context.Background()
	pipe.FlushDB(ctx)
	replies := make([]*redis.Cmd, len(e.steps))
	for i, of := range e.steps {
		replies[i] = pipe.EvalSha(ctx, s.sha(as, of.script), of.keys, append(of.argv[:len(of.argv):len(of.argv)], of.now)...)
		if closer != nil {
			closer(pipe, of)
		}
	}
	_, _ = pipe.Exec(ctx)
	for i, reply := range replies {
		if check := e.steps[i].check; check != nil && reply.Err() == nil {
			if wrong := check(reply.Val()); wrong != nil {
				t.Fatalf("%s\n%v", e.story(i), wrong)
			}
			continue
		}
		got, err := reply.Slice()
		if err != nil {
			t.Fatalf("%s\nRedis: %v", e.story(i), err)
		}
		if want := e.steps[i].want; want != nil && !slices.Equal(got, want) {
			t.Fatalf("%s\nRedis answers %v, this process %v", e.story(i), got, want)
		}
	}
}

// failer is a test of the standard library or of rapid.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
}

// story describes the steps up to one of them.
func (e *engines) story(to int) string {
	var b strings.Builder
	for i := max(0, to-12); i <= to; i++ {
		of := e.steps[i]
		fmt.Fprintf(&b, "\n%d at %d (%+d): %s; this process: %v", i, of.now, of.now-e.steps[max(0, i-1)].now, of.said, of.want)
	}
	return b.String()
}
