package algorithm_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// FuzzStates writes any bytes in place of a counter into a real Redis, in the type that the
// algorithm uses, and runs every script on them. Each script must either answer within the limit
// and leave a state that can be used again, or report that this is no counter and leave it
// unchanged. It must report bytes that cannot be a state, and answer to those of a state. For a
// state whose parts contradict each other, either is right. Scripts that decide raise no error.
func FuzzStates(f *testing.F) {
	s := startServer(f)
	limits := append(oneOfEach(f), bucket(f, 7, 3*hour, 21), algorithm.Windowed(algorithm.SlidingWindow, 1000, hour))
	for i := range limits {
		l := &limits[i]
		for _, used := range [][]int64{{1}, {7}, {1, second / 32, 2, second / 2, 3}, {2, second, 1}, {1, hour, 1}} {
			state := s.stateAfter(f, l, used)
			for _, later := range []int64{0, 1, second / 32, second, hour, -1, -second, -hour} {
				f.Add(byte(i), state, later)
			}
		}
		if l.Kind == algorithm.SlidingLog {
			s.addShifted(f, byte(i), l)
		}
		endsLate := strings.Repeat("\x01", 7) + strings.Repeat("\x00", 17) // a pause that ends after it is forgotten
		for _, state := range []string{"hello", "12345", endsLate, strings.Repeat("\x00", 24), strings.Repeat("\xff", 28), strings.Repeat("\x01", 31), strings.Repeat("\x05", 19)} {
			f.Add(byte(i), []byte(state), int64(0))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, state []byte, later int64) {
		s.t = t
		l := &limits[int(kind)%len(limits)]
		planted := planted{server: s, TB: t, limit: l, state: state, now: early + later%(10*hour)}
		if len(state) == 0 || len(state) > 2000 || planted.put() == nil {
			return
		}
		for name, a := range planted.attempts() {
			planted.try(name, a)
		}
		planted.tryAmongMany(limits)
	})
}

// planted holds bytes that replace a counter.
type planted struct {
	*server
	testing.TB
	limit *algorithm.Limit
	state []byte
	now   int64
}

// members returns the bytes as a sorted set: for each member its score, its length, and the member.
func (p *planted) members() (all []redis.Z) {
	for rest := p.state; len(rest) >= 9; {
		n := min(int(rest[8]), len(rest)-9)
		if score := math.Float64frombits(binary.LittleEndian.Uint64(rest)); !math.IsNaN(score) {
			all = append(all, redis.Z{Score: score, Member: string(rest[9 : 9+n])})
		}
		rest = rest[9+n:]
	}
	return all
}

// appendMembers appends a sorted set in the form that members takes.
func appendMembers(state []byte, all []redis.Z) []byte {
	for _, z := range all {
		state = binary.LittleEndian.AppendUint64(state, math.Float64bits(z.Score))
		state = append(append(state, byte(len(z.Member.(string)))), z.Member.(string)...)
	}
	return state
}

// isSet reports whether the state is a sorted set.
func (p *planted) isSet() bool {
	return p.limit.Kind == algorithm.SlidingLog || p.limit.Kind == algorithm.Concurrency
}

// put returns the function that writes the bytes, or nil if they are empty.
func (p *planted) put() plant {
	ctx := context.Background()
	if !p.isSet() {
		return func(pipe redis.Pipeliner, key string) { pipe.Set(ctx, key, p.state, 0) }
	}
	if len(p.members()) == 0 {
		return nil
	}
	return func(pipe redis.Pipeliner, key string) { pipe.ZAdd(ctx, key, p.members()...) }
}

// attempts returns the scripts to run on the counter: those for foreign values, and those that
// decide several calls.
func (p *planted) attempts() map[string]attempt {
	all := attempts(p.limit, "counter")
	this := algorithm.Counter{Key: []byte("counter"), Limit: p.limit, Cost: 1, Mark: "mark"}
	if this.Merges() {
		all["equal"] = deciding(algorithm.Op{Mode: algorithm.AllOrNone, Counters: []algorithm.Counter{this}, Calls: 3}, p.now)
	}
	if p.limit.Properties().HasPermits() {
		all["up to"] = deciding(algorithm.Op{Mode: algorithm.UpTo, Counters: []algorithm.Counter{this}, Calls: 1}, p.now)
	}
	return all
}

// try runs one script on the bytes, and checks the counter afterwards.
func (p *planted) try(name string, a attempt) {
	p.Helper()
	ctx, pipe := context.Background(), p.Pipeline()
	pipe.FlushDB(ctx)
	p.put()(pipe, "counter")
	before := pipe.Dump(ctx, "counter")
	reply := pipe.EvalSha(ctx, p.sha(timed, a.script), a.keys, append(slices.Clone(a.argv), p.now)...)
	after, lives, others := pipe.Dump(ctx, "counter"), pipe.Do(ctx, "pttl", "counter"), pipe.DBSize(ctx)
	look := ask{p.now, false, []algorithm.Counter{{Key: []byte("counter"), Limit: p.limit, Cost: 1, Mark: "mark"}}}
	again := p.queue(pipe, timed, look)
	_, _ = pipe.Exec(ctx)
	changed := before.Val() != after.Val()
	switch foreign := a.isForeign(reply); {
	case before.Err() != nil:
		p.Fatalf("the bytes were not put in place: %v", before.Err())
	case reply.Err() != nil && !foreign:
		p.failf(name, "%v", reply.Err())
	case foreign && p.whole():
		p.failf(name, "a state of ours is answered with %v", reply)
	case foreign && (changed || others.Val() != 1):
		p.failf(name, "no counter, and yet %q became %q, beside %d keys", before.Val(), after.Val(), others.Val()-1)
	case foreign:
	case !p.sound() && (changed || a.op != nil && name != "over"):
		p.failf(name, "no state of ours is answered with %v, and became %q", reply.Val(), after.Val())
	case changed && after.Err() == nil && lives.Val().(int64) < 0:
		p.failf(name, "what was written lives for ever")
	default:
		p.read(name, a, reply.Val())
		if changed {
			_, verdicts, err := readOp(look.op(), again.Val(), 0, 1)
			switch {
			case err == nil:
				p.within(name+", then a look", verdicts[0])
			case p.whole():
				p.failf(name, "what was written is none of ours: %v", err)
			}
		}
	}
}

// tryAmongMany makes calls on the bytes, with and without another counter, in one script with a
// call on a healthy counter, under this limit or any other.
func (p *planted) tryAmongMany(limits []algorithm.Limit) {
	p.Helper()
	other := algorithm.Windowed(algorithm.FixedWindow, 9, second)
	on := func(key string, l *algorithm.Limit) algorithm.Counter {
		return algorithm.Counter{Key: []byte(key), Limit: l, Cost: 1}
	}
	for i := range limits {
		l := &limits[i]
		if c := on("alone", l); !c.Merges() || !c.Charges() || p.isSet() && l != p.limit {
			continue
		}
		forms := []crowdForm{
			{3, [][]algorithm.Counter{{on("alone", l)}}},
			{3, [][]algorithm.Counter{{on("first", l), on("planted", l)}, {on("planted too", l), on("last", l)}}},
			{3, [][]algorithm.Counter{{on("healthy", &other)}}},
		}
		ctx, pipe := context.Background(), p.Pipeline()
		pipe.FlushDB(ctx)
		planted := []string{"alone", "planted", "planted too"}
		for _, key := range planted {
			p.put()(pipe, key)
		}
		before := pipe.Dump(ctx, "alone")
		keys, argv := manyArgs(forms, p.now)
		reply := pipe.EvalSha(ctx, p.sha(timed, algorithm.DecideScript(kindsOf(forms))), keys, append(argv, p.now)...)
		var after []*redis.StringCmd
		for _, key := range planted {
			after = append(after, pipe.Dump(ctx, key))
		}
		beside, healthy := pipe.Exists(ctx, "first", "last"), pipe.Exists(ctx, "healthy")
		_, _ = pipe.Exec(ctx)
		replies, err := reply.Slice()
		if err != nil || len(replies) != 1+2*len(keys) || replies[11] == int64(-1) || healthy.Val() != 1 {
			p.failf("many", "%v, %v; the healthy counter exists: %d", replies, err, healthy.Val())
			continue
		}
		for i, at := range []int{0, 2, 3} {
			foreign := replies[1+2*at] == int64(-1)
			if foreign != (replies[1] == int64(-1)) || foreign && after[i].Val() != before.Val() {
				p.failf("many", "%q are the replies, and %q became %q", replies, before.Val(), after[i].Val())
			}
			if l == p.limit && !p.sound() && !foreign {
				p.failf("many", "no state of ours is answered with %v", replies[1+2*at:3+2*at])
			}
		}
		charged := int64(0)
		if passed, _ := replies[1+2*2].(int64); passed > 0 {
			charged = 2
		}
		if beside.Val() != charged || charged > 0 && after[0].Val() == before.Val() || after[1].Val() != after[2].Val() {
			p.failf("many", "%q are the replies, and of the counters beside it %d exist", replies, beside.Val())
		}
	}
}

// read checks the reply of a script.
func (p *planted) read(name string, a attempt, reply any) {
	p.Helper()
	if a.op == nil {
		return
	}
	for ahead := range a.op.Calls {
		op := *a.op
		op.Calls, op.Counters = 1, slices.Clone(op.Counters)
		_, verdicts, err := readOp(&op, reply, ahead, a.op.Calls)
		if err != nil && p.whole() {
			p.failf(name, "%q cannot be read: %v", reply, err)
		}
		if err != nil {
			return
		}
		for i := range verdicts {
			if string(op.Counters[i].Key) == "counter" {
				p.within(fmt.Sprint(name, ", call ", ahead), verdicts[i])
			}
		}
		if wait := verdicts[0].Wait; wait < 0 || wait > 1<<52*max(1, p.limit.Tick) { // the time for the most units at the slowest rate
			p.failf(name, "waits for %d µs", wait)
		}
	}
}

// within checks a verdict.
func (p *planted) within(name string, v algorithm.Verdict) {
	p.Helper()
	retry, left, reset := v.RetryAfter, v.Remaining, v.ResetAfter
	longest := p.limit.Window + (p.limit.Window+31)/32 // SlidingWindow's
	switch p.limit.Kind {
	case algorithm.TokenBucket: // the time for the most units at the slowest rate
		longest = 1<<52*p.limit.Tick + p.limit.Tick
	case algorithm.Pausing: // what stands there
		longest = 1 << 53
	}
	if retry < 0 || retry > longest || left < 0 || left > p.limit.Max || reset < 0 || reset > longest {
		p.failf(name, "retry after %d µs, %d left of %d, reset after %d µs", retry, left, p.limit.Max, reset)
	}
}

func (p *planted) failf(name, format string, args ...any) {
	p.Helper()
	p.Errorf("%s %s of %d, at %d: %s", p.limit.Kind.Tag(), name, p.limit.Window, p.now-early, fmt.Sprintf(format, args...))
}
