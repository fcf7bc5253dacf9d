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

// ask carries out an op in this process, and returns the verdicts.
func (e *engines) ask(op *algorithm.Op) []algorithm.Verdict {
	e.process.Do(context.Background(), op)
	return op.Verdicts
}

// do carries out an op in this process. It returns the step by which Redis must give the same answers.
func (e *engines) do(said string, op *algorithm.Op, at int64) step {
	asked := *op
	asked.Counters = slices.Clone(op.Counters) // what UpTo charges becomes their cost
	return e.op(said, asked, at, e.ask(op))
}

// decide decides over counters together. Redis receives the bounds of calendars at another time.
func (e *engines) decide(charge bool, at int64, counters []algorithm.Counter) []algorithm.Verdict {
	op := algorithm.NewOp(algorithm.Looks, slices.Clone(counters)...)
	for i := range counters {
		op.Counters[i].ShowsDebt = true // as replies to looks do
	}
	if charge {
		op.Mode = algorithm.AllOrNone
	}
	e.add(e.do(fmt.Sprint("charge: ", charge), op, at))
	verdicts := slices.Clone(op.Verdicts)
	for i := range verdicts {
		verdicts[i].Remaining = max(0, verdicts[i].Remaining)
	}
	return verdicts
}

// upTo charges as much of the counters' cost as fits, and stores that in their Cost.
func (e *engines) upTo(at int64, counters []algorithm.Counter) []algorithm.Verdict {
	op := algorithm.NewOp(algorithm.UpTo, counters...)
	e.add(e.do("up to", op, at))
	return op.Verdicts
}

func (e *engines) reserve(c algorithm.Counter, patience int64) algorithm.Verdict {
	op := algorithm.NewOp(algorithm.InTurn, c)
	op.Patience = patience
	e.add(e.do(fmt.Sprint("reserve with patience ", patience), op, e.now))
	return op.Verdicts[0]
}

// change changes counters in this process. It returns the step by which Redis must give the same answers, and
// these.
func (e *engines) change(said string, at int64, c algorithm.Change) (s step, changed *algorithm.Change) {
	theirs := c
	_ = e.process.Change(context.Background(), &c)
	s = step{said: said, script: c.Script(), argv: c.Append(nil, at)}
	for i := range c.Len() {
		s.keys = append(s.keys, string(c.KeyAt(i)))
		s.said += " " + string(c.KeyAt(i))
	}
	s.writes = s.keys
	s.check = func(reply any) error {
		err := theirs.Read(scriptclock.Texts(reply))
		if err != nil || theirs.Lost != c.Lost || theirs.Paused != c.Paused || theirs.Billed != c.Billed {
			return fmt.Errorf("Redis says %+v, %v, this process %+v", theirs, err, c)
		}
		return nil
	}
	return s, &c
}

func (e *engines) giveBack(charges ...algorithm.Charge) {
	said := "give back"
	for i := range charges {
		said += fmt.Sprintf(" %s cost %d at %d", charges[i].Key, charges[i].Cost, charges[i].At)
	}
	s, _ := e.change(said, e.now, algorithm.Change{Charges: slices.Clone(charges)})
	e.add(s)
}

func (e *engines) renew(slots ...algorithm.Charge) {
	s, _ := e.change(fmt.Sprintf("renew for %q", slots[0].Mark), e.now, algorithm.Change{Kind: algorithm.Renews, Charges: slots})
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

func (e *engines) pause(key string, p algorithm.Pause) algorithm.Paused {
	s, c := e.change(fmt.Sprintf("pause: %+v", p), e.now, algorithm.Change{Kind: algorithm.Pauses, Key: []byte(key), Pause: &p})
	e.add(s)
	return c.Paused
}

func (e *engines) pauseOver(key string) {
	s, _ := e.change("the pause is over", e.now, algorithm.Change{Kind: algorithm.EndsPause, Key: []byte(key)})
	e.add(s)
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
