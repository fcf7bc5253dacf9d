package algorithm_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// plant writes a foreign value into a key.
type plant func(pipe redis.Pipeliner, key string)

// foreign returns values of every type, and values of an algorithm's own type that resemble a
// state.
func foreign() map[string]plant {
	ctx := context.Background()
	all := map[string]plant{
		"hash": func(pipe redis.Pipeliner, key string) { pipe.HSet(ctx, key, "field", "value") },
		"set":  func(pipe redis.Pipeliner, key string) { pipe.SAdd(ctx, key, "member") },
		"stream": func(pipe redis.Pipeliner, key string) {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"a", "b"}})
		},
	}
	for length := range 60 {
		text := strings.Repeat("Text9", 12)[:length]
		all[fmt.Sprint("string of ", length)] = func(pipe redis.Pipeliner, key string) { pipe.Set(ctx, key, text, 0) }
		all[fmt.Sprint("list of texts of ", length)] = func(pipe redis.Pipeliner, key string) { pipe.RPush(ctx, key, text, text, text) }
	}
	for _, score := range []float64{math.Inf(-1), -5, 0, 1, 1e9, 1e300, math.Inf(1)} {
		all[fmt.Sprint("sorted set up to ", score)] = func(pipe redis.Pipeliner, key string) {
			pipe.ZAdd(ctx, key, redis.Z{Score: -8, Member: "low"}, redis.Z{Score: score, Member: "high"})
		}
	}
	for _, score := range []float64{1, 1e300, math.Inf(1)} {
		all[fmt.Sprint("slot beside ", score)] = func(pipe redis.Pipeliner, key string) {
			pipe.ZAdd(ctx, key, redis.Z{Score: min(score, early), Member: "mark"}, redis.Z{Score: score, Member: "other"})
		}
	}
	return all
}

// attempt is a script to run on a foreign key.
type attempt struct {
	script *algorithm.Script
	keys   []string
	argv   []any
	op     *algorithm.Op // what it decides, or nil
}

// deciding returns the attempt of an op.
func deciding(op algorithm.Op, at int64) attempt {
	return attempt{op.Script(), keysOf(&op), op.Append(nil, at), &op}
}

// changing returns the attempt of a change.
func changing(c algorithm.Change) attempt {
	a := attempt{script: c.Script(), argv: c.Append(nil, early)}
	for i := range c.Len() {
		a.keys = append(a.keys, string(c.KeyAt(i)))
	}
	return a
}

// attempts returns every script that works with a counter. Any other counters of its calls would
// let every call pass.
func attempts(l *algorithm.Limit, key string) map[string]attempt {
	other := algorithm.Counter{Key: []byte("other"), Limit: new(algorithm.Windowed(algorithm.FixedWindow, 100, second)), Cost: 1}
	log := algorithm.Counter{Key: []byte("other log"), Limit: new(algorithm.Windowed(algorithm.SlidingLog, 100, second)), Cost: 1}
	this := algorithm.Counter{Key: []byte(key), Limit: l, Cost: 1, Mark: "mark"}
	all := make(map[string]attempt)
	for name, mode := range map[string]algorithm.Mode{"charge": algorithm.AllOrNone, "look": algorithm.Looks} {
		all[name] = deciding(algorithm.Op{Mode: mode, Counters: []algorithm.Counter{other, this, log}, Calls: 1}, early)
		behind := other
		behind.Behind = 2
		all[name+" before a soft rule"] = deciding(algorithm.Op{Mode: mode, Counters: []algorithm.Counter{this, behind}, Calls: 1}, early)
		soft := this
		soft.Behind = 1
		all[name+" of soft rules"] = deciding(algorithm.Op{Mode: mode, Counters: []algorithm.Counter{soft, behind}, Calls: 1}, early)
		all[name+" alone"] = deciding(algorithm.Op{Mode: mode, Counters: []algorithm.Counter{this}, Calls: 1}, early)
	}
	given := algorithm.Verdict{At: early, ResetAfter: second, Taken: 1}
	charges := []algorithm.Charge{other.Charged(&given), this.Charged(&given), log.Charged(&given)}
	of := l.Properties()
	if of.Pauses {
		all["begin"] = changing(algorithm.Change{Kind: algorithm.Pauses, Key: this.Key, Pause: &algorithm.Pause{Span: second, Longest: hour}})
		all["over"] = changing(algorithm.Change{Kind: algorithm.EndsPause, Key: this.Key})
		return all
	}
	all["open"] = deciding(algorithm.Op{
		Mode: algorithm.AllOrNone, Counters: []algorithm.Counter{this}, Calls: 1, Bill: &algorithm.OpenBill{Key: []byte("bill"), Span: second},
	}, early)
	if of.Debts {
		all["in debt, once"] = deciding(algorithm.Op{
			Mode: algorithm.InDebt, Counters: []algorithm.Counter{other, this}, Calls: 1, Share: 1, Record: []byte("record"),
		}, early)
	}
	if of.Notes {
		all["records"] = attempt{algorithm.Records, []string{key}, algorithm.AppendRecords(nil, l), nil}
	}
	if of.Reserves {
		all["reserve"] = deciding(algorithm.Op{Mode: algorithm.InTurn, Counters: []algorithm.Counter{this}, Calls: 1, Patience: second}, early)
	}
	if of.Slots {
		slots := this
		slots.Key = []byte("other slots")
		all["renew"] = changing(algorithm.Change{Kind: algorithm.Renews, Charges: []algorithm.Charge{slots.Charged(&given), this.Charged(&given)}})
	}
	all["give back"] = changing(algorithm.Change{Charges: charges})
	return all
}

// A value that is no counter is an error. It stays as it is, and nothing else is changed.
func TestForeignValuesAreLeftAlone(t *testing.T) {
	s := startServer(t)
	for _, l := range oneOfEach(t) {
		for what, put := range foreign() {
			for name, a := range attempts(&l, "foreign") {
				if name == "give back" && l.Kind == algorithm.Concurrency && strings.HasPrefix(what, "sorted set") {
					// It holds no slot of ours, so there is nothing to give back, and its type is
					// not checked.
					continue
				}
				s.wantLeftAlone(t, l.Kind.Tag()+" "+name+" "+what, put, a)
			}
		}
	}
}

// oneOfEach returns a limit of every algorithm. Their order is that of the fuzz corpus.
func oneOfEach(t testing.TB) []algorithm.Limit {
	all := []algorithm.Limit{bucket(t, 7, second, 7)}
	for _, kind := range algorithm.Kinds() {
		if kind.Limits() && !slices.ContainsFunc(all, func(l algorithm.Limit) bool { return l.Kind == kind }) {
			all = append(all, algorithm.Windowed(kind, 7, second))
		}
	}
	return append(all, algorithm.PauseLimit)
}

// wantLeftAlone runs a script on a foreign value, and checks that it changes nothing.
func (s *server) wantLeftAlone(t *testing.T, what string, put plant, a attempt) {
	t.Helper()
	ctx, pipe := context.Background(), s.Pipeline()
	pipe.FlushDB(ctx)
	for _, of := range []algorithm.Counter{
		{Key: []byte("other"), Limit: new(algorithm.Windowed(algorithm.FixedWindow, 100, second)), Cost: 5},
		{Key: []byte("other log"), Limit: new(algorithm.Windowed(algorithm.SlidingLog, 100, second)), Cost: 5, Mark: "mark"},
		{Key: []byte("other slots"), Limit: new(algorithm.Windowed(algorithm.Concurrency, 9, second)), Cost: 1, Mark: "others"},
	} {
		s.queue(pipe, timed, ask{early, true, []algorithm.Counter{of}})
	}
	put(pipe, "foreign")
	dump := func() (all []*redis.StringCmd) {
		for _, key := range []string{"foreign", "other", "other log", "other slots"} {
			all = append(all, pipe.Dump(ctx, key))
		}
		return all
	}
	before := dump()
	reply := pipe.EvalSha(ctx, s.sha(timed, a.script), a.keys, append(a.argv, int64(early+1))...)
	after, size := dump(), pipe.DBSize(ctx)
	_, _ = pipe.Exec(ctx)
	if !a.isForeign(reply) {
		t.Errorf("%s: %v", what, reply)
	}
	for i := range before {
		if before[i].Err() != nil || before[i].Val() != after[i].Val() {
			t.Errorf("%s: key %d was %q, %v, and is %q", what, i, before[i].Val(), before[i].Err(), after[i].Val())
		}
	}
	if size.Val() != 4 {
		t.Errorf("%s: %d keys", what, size.Val())
	}
}

// isForeign reports whether the reply says that a key holds no counter.
func (a *attempt) isForeign(reply *redis.Cmd) bool {
	if err := reply.Err(); err != nil {
		return strings.Contains(err.Error(), "WRONGTYPE") || strings.Contains(err.Error(), "NOTACOUNTER")
	}
	if a.op == nil {
		return false
	}
	_, _, err := readOp(a.op, reply.Val(), 0, a.op.Calls)
	return err == algorithm.ErrForeign
}
