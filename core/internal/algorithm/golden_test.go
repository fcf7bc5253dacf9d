package algorithm_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// The files in testdata/golden hold states that an earlier version of this package wrote, what that
// version then answered, and the states that it left. Counters in production outlive a deploy, so
// every later version must read these states, give the same answers and leave the same bytes. The
// files are written only when an algorithm is added, or gets a new tag: run this test with
// ACCESSLIMIT_GOLDEN set to its tag.

// golden is the history of one call's counters: the states in the middle, and what followed.
type golden struct {
	Limits []goldenLimit
	Before []goldenState // by counter
	Steps  []goldenStep
	After  []goldenState
}

// goldenLimit is the terms of a limit. Its Tag chooses which of them count.
type goldenLimit struct {
	Tag         string
	Max, Window int64   `json:",omitempty"`
	Rate        int64   `json:",omitempty"` // of a bucket, whose burst is Max
	Zone        string  `json:",omitempty"` // of a calendar of days
	Ban         []int64 `json:",omitempty"` // after, span, longest
}

// goldenState is a key's value: a string or the elements of a list in hex, or a sorted set.
type goldenState struct {
	Values []string  `json:",omitempty"`
	Scores []redis.Z `json:",omitempty"`
}

// goldenStep is one script call, and what it replied.
type goldenStep struct {
	Do       string // charge, look, crowd, give back, reserve, renew, records, ban
	Now      int64
	Counters []goldenCounter
	Number   int64         `json:",omitempty"` // calls of a crowd, patience of a reservation, span of a ban
	Charge   *goldenCharge `json:",omitempty"`
	Want     []int64
}

// goldenCounter is a counter of a call. Its key is that of the same place.
type goldenCounter struct {
	Key, Limit int
	Cost       int64  `json:",omitempty"`
	Mark       string `json:",omitempty"`
	Watched    []int  `json:",omitempty"`
	Dry        bool   `json:",omitempty"`
}

// goldenCharge is what a step gives back.
type goldenCharge struct{ At, Position, Given int64 }

func (l goldenLimit) compile(t testing.TB) *algorithm.Limit {
	t.Helper()
	switch {
	case l.Rate > 0:
		return new(bucket(t, l.Rate, l.Window, l.Max))
	case l.Zone != "":
		zone, err := time.LoadLocation(l.Zone)
		if err != nil {
			t.Fatal(err)
		}
		return new(algorithm.InCalendar(l.Max, algorithm.NewCalendar(l.Zone, zone, false)))
	case l.Ban != nil:
		return new(algorithm.Banned(l.Ban[0], l.Ban[1], l.Ban[2], l.Window))
	}
	return new(algorithm.Windowed(kindOf(t, l.Tag), l.Max, l.Window))
}

func kindOf(t testing.TB, tag string) algorithm.Kind {
	t.Helper()
	for kind := algorithm.SlidingWindow; kind <= algorithm.Ban; kind++ {
		if kind.Tag() == tag {
			return kind
		}
	}
	t.Fatalf("no algorithm has the tag %s", tag)
	return 0
}

// goldenPlayer executes steps on a server.
type goldenPlayer struct {
	*server
	limits []*algorithm.Limit
}

func goldenKey(i int) string { return fmt.Sprint("golden ", i) }

func (p *goldenPlayer) counters(step *goldenStep) (counters []algorithm.Counter) {
	for _, c := range step.Counters {
		counters = append(counters, algorithm.Counter{
			Key: []byte(goldenKey(c.Key)), Limit: p.limits[c.Limit], Cost: c.Cost, Mark: c.Mark, Watched: c.Watched, Lenient: c.Dry,
		})
	}
	return counters
}

// play executes a step and returns the numbers of its reply.
func (p *goldenPlayer) play(step *goldenStep) (got []int64) {
	p.t.Helper()
	counters := p.counters(step)
	first := &counters[0]
	switch step.Do {
	case "charge", "look":
		for _, v := range p.decide(timed, ask{step.Now, step.Do == "charge", counters}) {
			if v.Struck { // these files have it in place of a ban's position
				v.Position = 1
			}
			got = append(got, v.RetryAfter, v.Remaining, v.ResetAfter, v.Position)
		}
		return got
	case "crowd":
		return p.crowd(step, counters)
	case "give back":
		c := algorithm.Charge{
			Key: first.Key, Limit: first.Limit, Cost: first.Cost, Mark: first.Mark,
			At: step.Charge.At, Position: step.Charge.Position, Given: step.Charge.Given,
		}
		// That is all that the script replied then.
		return p.numbers(step, algorithm.GiveBackScript([]algorithm.Charge{c}), algorithm.AppendGiveBack(nil, []algorithm.Charge{c}))[:1]
	case "reserve":
		return p.numbers(step, algorithm.Reserve, algorithm.AppendReserve(nil, first, step.Number))
	case "renew":
		return p.numbers(step, algorithm.Renew, []any{first.Mark, first.Limit.Window})
	case "ban":
		// That is all that the script replied then.
		return p.numbers(step, algorithm.ImposeBan, []any{step.Number})[:1]
	}
	reply, err := p.eval(step, algorithm.Records, []any{first.Limit.Window}).Slice()
	if step.Do != "records" || err != nil {
		p.t.Fatalf("%+v: %v", step, err)
	}
	for i := 0; i < len(reply); i += 3 {
		got = append(got, reply[i].(int64), reply[i+1].(int64), int64(len(reply[i+2].(string))))
	}
	return got
}

func (p *goldenPlayer) eval(step *goldenStep, script *algorithm.Script, argv []any) *redis.Cmd {
	var keys []string
	for _, c := range step.Counters {
		keys = append(keys, goldenKey(c.Key))
	}
	return p.EvalSha(context.Background(), p.sha(timed, script), keys, append(argv, step.Now)...)
}

func (p *goldenPlayer) numbers(step *goldenStep, script *algorithm.Script, argv []any) []int64 {
	p.t.Helper()
	numbers, err := p.eval(step, script, argv).Int64Slice()
	if err != nil {
		p.t.Fatalf("%+v: %v", step, err)
	}
	return numbers
}

// crowd has several equal calls decided together, and returns the verdict of each.
func (p *goldenPlayer) crowd(step *goldenStep, counters []algorithm.Counter) (got []int64) {
	p.t.Helper()
	e := newEngines(step.Now)
	e.crowd(step.Number, step.Now, counters) // for its command alone
	s := e.steps[0]
	reply, err := p.eval(step, s.script, s.argv).Result()
	if err != nil {
		p.t.Fatalf("%+v: %v", step, err)
	}
	verdicts, err := readCrowd(reply, step.Number, counters)
	if err != nil {
		p.t.Fatalf("%+v: %v", step, err)
	}
	for _, call := range verdicts {
		for _, v := range call {
			got = append(got, v.RetryAfter, v.Remaining, v.ResetAfter, v.Position)
		}
	}
	return got
}

// states returns the states of the first n counters.
func (p *goldenPlayer) states(n int) (states []goldenState) {
	p.t.Helper()
	ctx := context.Background()
	for i := range n {
		var state goldenState
		switch key := goldenKey(i); p.Type(ctx, key).Val() {
		case "string":
			state.Values = []string{hex.EncodeToString([]byte(p.Get(ctx, key).Val()))}
		case "list":
			for _, entry := range p.LRange(ctx, key, 0, -1).Val() {
				state.Values = append(state.Values, hex.EncodeToString([]byte(entry)))
			}
		case "zset":
			state.Scores = p.ZRangeWithScores(ctx, key, 0, -1).Val()
		}
		states = append(states, state)
	}
	return states
}

// put writes states as an earlier version left them.
func (p *goldenPlayer) put(states []goldenState) {
	p.t.Helper()
	ctx := context.Background()
	p.FlushDB(ctx)
	for i, state := range states {
		key, list := goldenKey(i), strings.HasPrefix(p.limits[i].Kind.Tag(), "sl")
		for _, text := range state.Values {
			value, err := hex.DecodeString(text)
			if err != nil {
				p.t.Fatal(err)
			}
			if list {
				p.RPush(ctx, key, value)
			} else {
				p.Set(ctx, key, value, 0)
			}
		}
		if state.Scores != nil {
			p.ZAdd(ctx, key, state.Scores...)
		}
	}
}

func TestStatesOfEarlierVersions(t *testing.T) {
	if only := os.Getenv("ACCESSLIMIT_GOLDEN"); only != "" {
		writeGolden(t, only)
		return
	}
	s := startServer(t)
	for kind := algorithm.SlidingWindow; kind <= algorithm.Ban; kind++ {
		files, _ := filepath.Glob(filepath.Join("testdata", "golden", kind.Tag()+"*.json"))
		if len(files) == 0 {
			t.Errorf("%s: no states of an earlier version are in testdata/golden", kind.Tag())
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				for i, of := range readGolden(t, file) {
					wantGolden(t, s, i, of)
				}
			})
		}
	}
}

func wantGolden(t *testing.T, s *server, i int, of golden) {
	t.Helper()
	p := newGoldenPlayer(t, s, of.Limits)
	p.put(of.Before)
	for n := range of.Steps {
		step := &of.Steps[n]
		if got := p.play(step); !slices.Equal(got, step.Want) {
			t.Fatalf("history %d, step %d, %+v: replied %v", i, n, *step, got)
		}
	}
	for n, state := range p.states(len(of.After)) {
		if !slices.Equal(state.Values, of.After[n].Values) || !slices.Equal(state.Scores, of.After[n].Scores) {
			t.Errorf("history %d, counter %d: left %v, want %v", i, n, state, of.After[n])
		}
	}
}

func newGoldenPlayer(t testing.TB, s *server, limits []goldenLimit) *goldenPlayer {
	s.t = t
	p := &goldenPlayer{server: s}
	for _, l := range limits {
		p.limits = append(p.limits, l.compile(t))
	}
	return p
}

func readGolden(t *testing.T, file string) (histories []golden) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &histories)
	}
	if err != nil {
		t.Fatal(err)
	}
	return histories
}
