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
// state whose parts contradict each other, either is right. The fast scripts and decide_many.lua
// raise no error for any string: they leave it to another script.
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
			s.addGaps(f, byte(i), l)
		}
		for _, state := range []string{"hello", "12345", strings.Repeat("\x00", 24), strings.Repeat("\xff", 28), strings.Repeat("\x01", 31), strings.Repeat("\x05", 19)} {
			f.Add(byte(i), []byte(state), int64(0))
		}
	}
	for _, state := range s.bucketStates(f, limits) {
		for i := range limits {
			if limits[i].Kind == algorithm.TokenBucket {
				for _, later := range []int64{0, second / 32, second, -hour} {
					f.Add(byte(i), state, later)
				}
			}
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

// stateAfter returns the bytes of a counter after calls with these costs, and with this time
// between them, in the form that put takes.
func (s *server) stateAfter(f *testing.F, l *algorithm.Limit, used []int64) []byte {
	f.Helper()
	ctx, now := context.Background(), int64(early)
	s.FlushDB(ctx)
	for i, n := range used {
		if i%2 == 1 {
			now += n
			continue
		}
		a := ask{now, true, []algorithm.Counter{{Key: []byte("counter"), Limit: l, Cost: n, Mark: fmt.Sprint("mark", i)}}}
		keys, argv := a.args()
		if l.Kind == algorithm.Ban {
			s.EvalSha(ctx, s.sha(timed, algorithm.ImposeBan), keys, second, now)
			continue
		}
		s.EvalSha(ctx, s.sha(timed, algorithm.DecideScript(a.counters)), keys, argv...)
	}
	var state []byte
	switch l.Kind {
	case algorithm.SlidingLog:
		for _, entry := range s.LRange(ctx, "counter", 0, -1).Val() {
			state = append(append(state, byte(len(entry))), entry...)
		}
	case algorithm.Concurrency:
		for _, z := range s.ZRangeWithScores(ctx, "counter", 0, -1).Val() {
			state = binary.LittleEndian.AppendUint64(state, math.Float64bits(z.Score))
		}
	default:
		state = []byte(s.Get(ctx, "counter").Val())
	}
	if len(state) == 0 {
		f.Fatalf("%s: nothing is kept of %v", l.Kind.Tag(), used)
	}
	return state
}

// addGaps adds logs after refunds from the middle, and after the clock stepped back, and the same
// logs with one more byte somewhere.
func (s *server) addGaps(f *testing.F, kind byte, l *algorithm.Limit) {
	f.Helper()
	ctx, given := context.Background(), algorithm.Verdict{}
	s.FlushDB(ctx)
	for i := range int64(4) {
		now := early + i - i/3*second/2
		call := ask{now, true, []algorithm.Counter{{Key: []byte("counter"), Limit: l, Cost: 1 + i%2}}}
		if v := s.decide(timed, call)[0]; i == 1 {
			given = v
		}
	}
	s.giveBack(given, one("counter", l, early, 1))
	var entries [][]byte
	for _, entry := range s.LRange(ctx, "counter", 0, -1).Val() {
		entries = append(entries, []byte(entry))
	}
	last := entries[len(entries)-1]
	if len(last) < 34 {
		f.Fatalf("no gaps in %q", entries)
	}
	for at := range last {
		for _, more := range []byte{0, 1, 200} {
			last[at] += more
			var state []byte
			for _, entry := range entries {
				state = append(append(state, byte(len(entry))), entry...)
			}
			for _, later := range []int64{0, second / 2, second - 1, -second} {
				f.Add(kind, slices.Clone(state), later)
			}
			last[at] -= more
		}
	}
}

// bucketStates returns states of buckets with gaps and with several rates.
func (s *server) bucketStates(f *testing.F, limits []algorithm.Limit) (states [][]byte) {
	f.Helper()
	slower := bucket(f, 1, second, 9)
	for i := range limits {
		l := &limits[i]
		if l.Kind != algorithm.TokenBucket || l.Window != second {
			continue
		}
		for _, others := range [][]*algorithm.Limit{{l}, {&slower, l}} {
			s.FlushDB(context.Background())
			taken := s.decide(timed, one("counter", l, early, 1))[0]
			for _, other := range others {
				s.decide(timed, one("counter", other, early, 2))
			}
			s.giveBack(taken, one("counter", l, early, 1))
			states = append(states, []byte(s.Get(context.Background(), "counter").Val()))
		}
	}
	if len(states) == 0 {
		f.Fatal("no bucket is among the limits")
	}
	return states
}

// planted holds bytes that replace a counter.
type planted struct {
	*server
	testing.TB
	limit *algorithm.Limit
	state []byte
	now   int64
}

// entries returns the bytes as a list of texts, each of which follows its length.
func (p *planted) entries() (all []any) {
	for rest := p.state; len(rest) > 0; {
		n := min(int(rest[0]), len(rest)-1)
		all, rest = append(all, string(rest[1:1+n])), rest[1+n:]
	}
	return all
}

// scores returns the bytes as the scores of a sorted set, whose members are no holders.
func (p *planted) scores() (all []redis.Z) {
	for rest := p.state; len(rest) >= 8; rest = rest[8:] {
		if score := math.Float64frombits(binary.LittleEndian.Uint64(rest)); !math.IsNaN(score) {
			all = append(all, redis.Z{Score: score, Member: fmt.Sprint("member ", len(all))})
		}
	}
	return all
}

// put returns the function that writes the bytes, or nil if they are empty.
func (p *planted) put() plant {
	ctx := context.Background()
	switch p.limit.Kind {
	case algorithm.SlidingLog:
		return func(pipe redis.Pipeliner, key string) { pipe.RPush(ctx, key, p.entries()...) }
	case algorithm.Concurrency:
		if len(p.scores()) == 0 {
			return nil
		}
		return func(pipe redis.Pipeliner, key string) { pipe.ZAdd(ctx, key, p.scores()...) }
	default:
		return func(pipe redis.Pipeliner, key string) { pipe.Set(ctx, key, p.state, 0) }
	}
}

// sound reports whether the bytes could be a state. Of a list or a set, it checks what every script
// reads first.
func (p *planted) sound() bool {
	const moment = 1 << 53
	switch at, size := p.at, len(p.state); p.limit.Kind {
	case algorithm.SlidingWindow:
		return size >= 19 && size%6 == 1 && at(0, 7) < moment && at(13, 6) <= at(7, 6)
	case algorithm.FixedWindow, algorithm.CalendarWindow, algorithm.QuietPeriod:
		return size == 13 && at(0, 7) < moment
	case algorithm.TokenBucket:
		return p.bucket() > 0
	case algorithm.Ban:
		return size == 24 && at(7, 7) < moment && at(0, 7) <= at(17, 7) && at(17, 7) < moment
	case algorithm.SlidingLog:
		entries := p.entries()
		last := entries[len(entries)-1].(string)
		if len(last) < 16 {
			return false
		}
		when := binary.LittleEndian.Uint64([]byte(last)) << 8 >> 8
		return when > 0 && when < moment || when == 0 && len(last) >= 28 && len(entries) > 1
	default:
		newest := slices.MaxFunc(p.scores(), func(a, b redis.Z) int { return cmpFloat(a.Score, b.Score) }).Score
		return newest >= 1<<50 && newest < moment
	}
}

// whole reports whether the bytes are a state without contradictions. It does not look at lists and
// sets.
func (p *planted) whole() bool {
	switch p.limit.Kind {
	case algorithm.SlidingLog, algorithm.Concurrency:
		return false
	case algorithm.SlidingWindow:
		if !p.sound() {
			return false
		}
		charged, used, held := p.at(0, 7), p.at(7, 6), p.at(13, 6)
		ageBefore := uint64(33)
		for from := 19; from < len(p.state); from += 6 {
			age := (charged - p.at(from, 1)) % 64
			if age == 0 || age >= ageBefore {
				return false
			}
			ageBefore, held = age, held+p.at(from+1, 5)
		}
		return held == used
	}
	return p.sound() && (p.limit.Kind != algorithm.TokenBucket || p.bucket() > 1)
}

// bucket returns 2 if the bytes could be a bucket's state, 1 if only their gaps, which few scripts
// read, could not be, and otherwise 0.
func (p *planted) bucket() (sound int) {
	const most = 1 << 52
	at, size := p.at, len(p.state)
	if size < 44 || at(0, 7) >= 1<<53 || at(30, 7) > most || at(37, 7) >= 1<<53 {
		return 0
	}
	sound = 2
	slowest, from := 0., 7
	for parts := 1; ; parts++ {
		rest := from + 23 // where own stands
		if parts == 1 {
			rest = 44
		}
		if size < rest {
			return 0
		}
		used, permit, refill := at(from, 7), at(from+7, 6), at(from+13, 5)
		if used > most || permit == 0 || refill == 0 || float64(refill)/float64(permit) <= slowest || parts > 4 {
			return 0
		}
		if size == 44 {
			return sound
		}
		if size < rest+16 || int(at(rest+14, 2)) > 256 || size < rest+16+14*int(at(rest+14, 2)) {
			return 0
		}
		slowest = float64(refill) / float64(permit)
		var ok bool
		if from, ok = p.gaps(rest); !ok {
			sound = 1
		}
		if from == size {
			return sound
		}
	}
}

// gaps returns where the gaps of a part end whose own stands here, and whether they and what
// precedes them are sound.
func (p *planted) gaps(from int) (end int, sound bool) {
	own, kept, n := p.at(from, 7), p.at(from+7, 7), int(p.at(from+14, 2))
	sound = own <= 1<<52
	before, oldest := uint64(0), uint64(0)
	for i := range n {
		after, upto := p.at(from+16+14*i, 7), p.at(from+23+14*i, 7)
		sound = sound && after >= before && upto > after && upto <= p.at(30, 7)
		if before = upto; i == 0 {
			oldest = upto - after
		}
	}
	return from + 16 + 14*n, sound && kept <= oldest
}

// at returns the little-endian number in these bytes.
func (p *planted) at(from, length int) (n uint64) {
	for i := length - 1; i >= 0; i-- {
		n = n<<8 | uint64(p.state[from+i])
	}
	return n
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// attempts returns the scripts to run on the counter: those for foreign values, and those that
// decide several calls.
func (p *planted) attempts() map[string]attempt {
	all := attempts(p.limit, "counter")
	this := algorithm.Counter{Key: []byte("counter"), Limit: p.limit, Cost: 1, Mark: "mark"}
	if this.Merges() {
		all["equal"] = attempt{algorithm.EqualScript([]algorithm.Counter{this}), []string{"counter"}, algorithm.AppendEqual(nil, []algorithm.Counter{this}, 3, p.now)}
	}
	if !p.limit.Properties().Watches {
		all["up to"] = attempt{algorithm.UpToScript([]algorithm.Counter{this}), []string{"counter"}, algorithm.AppendUpTo(nil, []algorithm.Counter{this}, p.now)}
	}
	if fast := p.limit.FastScript(); fast != nil {
		all["fast"] = attempt{fast, []string{"counter"}, []any{p.limit.FastArg(1, 3)}}
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
	again := look.queue(pipe, p.sha(timed, algorithm.DecideScript(look.counters)))
	_, _ = pipe.Exec(ctx)
	changed := before.Val() != after.Val()
	switch err := reply.Err(); {
	case before.Err() != nil:
		p.Fatalf("the bytes were not put in place: %v", before.Err())
	case err != nil && name == "fast" && !strings.Contains(err.Error(), "WRONGTYPE"):
		p.failf(name, "%v", err)
	case err != nil:
		if p.whole() {
			p.failf(name, "a state of ours is answered with %v", err)
		}
		if !strings.Contains(err.Error(), "NOTACOUNTER") && !strings.Contains(err.Error(), "data string too short") {
			p.failf(name, "%v", err)
		}
		if changed || others.Val() != 1 {
			p.failf(name, "an error, %v, and yet %q became %q, beside %d keys", err, before.Val(), after.Val(), others.Val()-1)
		}
	case !p.sound() && (changed || name != "give back" && name != "records" && reply.Val() != int64(-1)):
		p.failf(name, "no state of ours is answered with %v, and became %q", reply.Val(), after.Val())
	case changed && after.Err() == nil && lives.Val().(int64) < 0:
		p.failf(name, "what was written lives for ever")
	default:
		p.read(name, a, reply.Val())
		if changed {
			values, err := again.Slice()
			switch {
			case err == nil:
				p.within(name+", then a look", values[1:])
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
		if !algorithm.Joins([]algorithm.Counter{on("alone", l)}) || algorithm.Joins([]algorithm.Counter{on("alone", p.limit)}) && l != p.limit {
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
		keys, argv := manyArgs(forms)
		reply := pipe.EvalSha(ctx, p.sha(timed, algorithm.ManyScript(kindsOf(forms))), keys, append(argv, p.now)...)
		var after []*redis.StringCmd
		for _, key := range planted {
			after = append(after, pipe.Dump(ctx, key))
		}
		beside, healthy := pipe.Exists(ctx, "first", "last"), pipe.Exists(ctx, "healthy")
		_, _ = pipe.Exec(ctx)
		replies, err := reply.Slice()
		if err != nil || len(replies) != len(keys) || replies[5] == int64(-1) || healthy.Val() != 1 {
			p.failf("many", "%v, %v; the healthy counter exists: %d", replies, err, healthy.Val())
			continue
		}
		for i, at := range []int{0, 2, 3} {
			alone := replies[at] == int64(-1)
			if alone != (replies[0] == int64(-1)) || alone && after[i].Val() != before.Val() {
				p.failf("many", "%q are the replies, and %q became %q", replies, before.Val(), after[i].Val())
			}
			if l == p.limit && !p.sound() && !alone {
				p.failf("many", "no state of ours is answered with %v", replies[at])
			}
		}
		charged := int64(0)
		if after[1].Val() != before.Val() {
			charged = 2
		}
		if beside.Val() != charged || (after[0].Val() != before.Val()) != (charged > 0) || after[1].Val() != after[2].Val() {
			p.failf("many", "%q are the replies, and of the counters beside it %d exist", replies, beside.Val())
		}
		if l == p.limit && replies[0] != int64(-1) {
			p.read("fast", attempt{}, replies[0])
		}
	}
}

// read checks the reply of a script.
func (p *planted) read(name string, a attempt, reply any) {
	p.Helper()
	values, _ := reply.([]any)
	switch name {
	case "charge", "look": // the counter before it is none of this
		p.within(name, values[5:8])
	case "reserve":
		p.within(name, values[1:4])
		if wait := values[4].(int64); wait < 0 || wait > 1<<51 {
			p.failf(name, "waits for %d µs", wait)
		}
	case "equal", "fast":
		if reply == int64(-1) {
			return
		}
		counter := algorithm.Counter{Key: []byte("counter"), Limit: p.limit, Cost: 1}
		for behind := range int64(4) {
			var found algorithm.Found
			var err error
			if name == "fast" {
				err = p.limit.ReadFast(fmt.Sprint(reply), 1, 3, &found)
			} else {
				found.Now = values[0].(int64)
				err = p.limit.ReadState(values[1].(string), &found)
			}
			if err != nil && p.whole() {
				p.failf(name, "%q cannot be read: %v", reply, err)
			}
			if err != nil {
				return
			}
			passed := found.Fit(&counter, 3)
			var v algorithm.Verdict
			found.Nth(&counter, min(behind, 2), passed, &v)
			p.within(fmt.Sprint(name, ", call ", behind), []any{v.RetryAfter, v.Remaining, v.ResetAfter})
		}
	}
}

// within checks a verdict: retry after, left, reset after.
func (p *planted) within(name string, numbers []any) {
	p.Helper()
	retry, left, reset := numbers[0].(int64), numbers[1].(int64), numbers[2].(int64)
	longest := p.limit.Window + (p.limit.Window+31)/32 // SlidingWindow's
	switch p.limit.Kind {
	case algorithm.TokenBucket: // the time for the most units at the slowest rate
		longest = 1<<52*p.limit.Tick + p.limit.Tick
	case algorithm.Ban: // what stands there
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
