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

// op returns a step whose answers must be those of this process.
func (e *engines) op(said string, op algorithm.Op, at int64, want []algorithm.Verdict) step {
	op.Counters = slices.Clone(op.Counters)
	s := step{said: said, script: op.Script(), keys: keysOf(&op), argv: op.Append(nil, at)}
	for i := range op.Counters {
		c := &op.Counters[i]
		s.said += fmt.Sprintf(" %s max %d cost %d", c.Key, c.Limit.Max, c.Cost)
		if want[i].Taken > 0 {
			s.writes = append(s.writes, string(c.Key))
		}
	}
	s.said += fmt.Sprintf("; this process: %+v", want)
	now := e.now
	s.check = func(reply any) error {
		at, got, err := readOp(&op, reply, 0, op.Calls)
		if err != nil || at != now || !slices.Equal(got, want) {
			return fmt.Errorf("Redis answers %+v, %v (%v)", got, err, reply)
		}
		return nil
	}
	return s
}

// decide decides over counters together. Redis receives the bounds of calendars at another time.
func (e *engines) decide(charge bool, at int64, counters []algorithm.Counter) []algorithm.Verdict {
	counters = slices.Clone(counters)
	for i := range counters {
		counters[i].ShowsDebt = true // as replies to looks do
	}
	verdicts := make([]algorithm.Verdict, len(counters))
	e.process.Decide(context.Background(), counters, charge, verdicts)
	op := algorithm.Op{Mode: algorithm.Looks, Counters: counters, Calls: 1}
	if charge {
		op.Mode = algorithm.AllOrNone
	}
	e.add(e.op(fmt.Sprint("charge: ", charge), op, at, verdicts))
	verdicts = slices.Clone(verdicts)
	for i := range verdicts {
		verdicts[i].Remaining = max(0, verdicts[i].Remaining)
	}
	return verdicts
}

// upTo charges as much of the counters' cost as fits, and stores that in their Cost.
func (e *engines) upTo(at int64, counters []algorithm.Counter) []algorithm.Verdict {
	op := algorithm.Op{Mode: algorithm.UpTo, Counters: slices.Clone(counters), Calls: 1}
	verdicts := make([]algorithm.Verdict, len(counters))
	e.process.DecideUpTo(context.Background(), counters, verdicts)
	e.add(e.op("up to", op, at, verdicts))
	return verdicts
}

func (e *engines) reserve(c algorithm.Counter, patience int64) algorithm.Verdict {
	v := e.process.Reserve(context.Background(), &c, patience)
	op := algorithm.Op{Mode: algorithm.InTurn, Counters: []algorithm.Counter{c}, Calls: 1, Patience: patience}
	e.add(e.op(fmt.Sprint("reserve with patience ", patience), op, e.now, []algorithm.Verdict{v}))
	return v
}

// change returns a step that changes counters. Redis must answer as check says.
func (e *engines) change(said string, c algorithm.Change, check func(reply []string) error) step {
	s := step{said: said, script: c.Script(), argv: c.Append(nil)}
	for i := range c.Len() {
		s.keys = append(s.keys, string(c.KeyAt(i)))
		s.said += " " + string(c.KeyAt(i))
	}
	s.writes = s.keys
	s.check = func(reply any) error { return check(scriptclock.Texts(reply)) }
	return s
}

func (e *engines) giveBack(charges ...algorithm.Charge) {
	before := e.process.RefundsLost()
	_ = e.process.GiveBack(context.Background(), charges)
	lost := int64(e.process.RefundsLost() - before)
	said, c := "give back", algorithm.Change{Charges: slices.Clone(charges)}
	for i := range charges {
		said += fmt.Sprintf(" %s cost %d at %d", charges[i].Key, charges[i].Cost, charges[i].At)
	}
	e.add(e.change(said, c, func(reply []string) error {
		if got, err := c.ReadLost(reply); err != nil || got != lost {
			return fmt.Errorf("Redis lost %v, %v, this process %d", got, err, lost)
		}
		return nil
	}))
}

func (e *engines) renew(slots ...algorithm.Charge) {
	_ = e.process.Renew(context.Background(), slots)
	e.add(e.change(fmt.Sprintf("renew for %q", slots[0].Mark), algorithm.Change{Charges: slots, Renews: true}, noError))
}

func noError([]string) error { return nil }

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
	c := algorithm.Change{Key: []byte(key), Pause: &p}
	e.add(e.change(fmt.Sprintf("pause: %+v", p), c, func(reply []string) error {
		if got, err := c.ReadPaused(reply); err != nil || got != paused {
			return fmt.Errorf("Redis pauses %+v, %v, this process %+v", got, err, paused)
		}
		return nil
	}))
	return paused
}

func (e *engines) pauseOver(key string) {
	_ = e.process.PauseOver(context.Background(), []byte(key))
	e.add(e.change("the pause is over", algorithm.Change{Key: []byte(key)}, noError))
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
		fmt.Fprintf(&b, "\n%d at %d (%+d): %s", i, of.now, of.now-e.steps[max(0, i-1)].now, of.said)
	}
	return b.String()
}
