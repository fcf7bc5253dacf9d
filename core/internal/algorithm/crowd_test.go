package algorithm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// crowd makes several equal calls at once. This process decides them one after the other. Redis
// decides all of them in one script, the fast one if there is one, and must give the same answers.
func (e *engines) crowd(calls int64, at int64, counters []algorithm.Counter) []algorithm.Verdict {
	counters = slices.Clone(counters)
	s := step{script: crowdScript(counters), argv: []any{""}, said: fmt.Sprint(calls, " times")}
	if fast := counters[0].Limit.FastScript(); len(counters) == 1 && fast != nil {
		s.argv[0] = counters[0].Limit.FastArg(counters[0].Cost, calls)
	}
	s.argv = algorithm.AppendEqual(s.argv, counters, calls, at)
	for _, c := range counters {
		s.keys = append(s.keys, string(c.Key))
		s.said += fmt.Sprintf(" %s max %d cost %d", c.Key, c.Limit.Max, c.Cost)
	}
	want := make([][]algorithm.Verdict, calls)
	for i := range want {
		want[i] = make([]algorithm.Verdict, len(counters))
		e.process.Decide(context.Background(), counters, true, want[i])
	}
	if algorithm.Passes(counters, want[0]) {
		s.writes = s.keys
	}
	s.check = func(reply any) error { return checkCrowd(reply, counters, want) }
	e.add(s)
	return want[0]
}

// checkCrowd compares Redis's reply to a crowd with this process's answer to each call.
func checkCrowd(reply any, counters []algorithm.Counter, want [][]algorithm.Verdict) error {
	got, err := readCrowd(reply, int64(len(want)), counters)
	if err != nil {
		return err
	}
	for behind := range want {
		for i := range counters {
			if got[behind][i].At == 0 { // a bucket's refusal
				got[behind][i].At = want[behind][i].At
			}
			if got[behind][i] != want[behind][i] {
				return fmt.Errorf("call %d of %d, counter %d: Redis says %+v, this process %+v", behind, len(want), i, got[behind][i], want[behind][i])
			}
		}
	}
	return nil
}

// readCrowd computes the answer to each call from Redis's reply to all of them.
func readCrowd(reply any, calls int64, counters []algorithm.Counter) (verdicts [][]algorithm.Verdict, err error) {
	found := make([]algorithm.Found, len(counters))
	read := func() error {
		if joined, ok := reply.(joinedReply); ok {
			return joined.read(counters, found)
		}
		values, several := reply.([]any)
		if !several {
			return counters[0].Limit.ReadFast(fmt.Sprint(reply), counters[0].Cost, calls, &found[0])
		}
		return algorithm.ReadEqual(values, counters, found)
	}
	asked := calls
	if joined, ok := reply.(joinedReply); ok {
		asked = joined.asked
	}
	for behind := range calls {
		if err := read(); err != nil {
			return nil, err
		}
		passed := asked
		for i := range counters {
			passed = min(passed, found[i].Fit(&counters[i], passed))
		}
		verdicts = append(verdicts, make([]algorithm.Verdict, len(counters)))
		for i := range counters {
			found[i].Nth(&counters[i], behind, passed, &verdicts[behind][i])
		}
	}
	return verdicts, nil
}

var crowdScripts = map[string]*algorithm.Script{}

// crowdScript returns the fast script and decide_equal.lua in one script, which runs them one after
// the other.
func crowdScript(counters []algorithm.Counter) *algorithm.Script {
	fast, equal := counters[0].Limit.FastScript(), algorithm.EqualScript(counters)
	if len(counters) > 1 || fast == nil {
		fast = &algorithm.Script{Text: scriptclock.Lines + "return -1\n"}
	}
	body := func(s *algorithm.Script) string { return strings.Replace(s.Text, scriptclock.Lines, "", 1) }
	text := scriptclock.Lines + "local function fast(ARGV)\n" + body(fast) + "end\nlocal function equal(ARGV)\n" + body(equal) +
		"end\nlocal reply = fast({ARGV[1]})\nif reply == -1 then reply = equal({unpack(ARGV, 2)}) end\nreturn reply\n"
	if crowdScripts[text] == nil {
		crowdScripts[text] = &algorithm.Script{Text: text}
	}
	return crowdScripts[text]
}

// The fast scripts decide the common cases by themselves: a counter that is new, used, used up, or
// over, and several calls on one.
func TestFastScriptsDecideCommonCases(t *testing.T) {
	s := startServer(t)
	tenPerSecond := algorithm.Windowed(algorithm.SlidingWindow, 10, second)
	fixed := algorithm.Windowed(algorithm.FixedWindow, 10, second)
	tokens, slow := bucket(t, 10, second, 10), bucket(t, 10, 3*hour, 10)
	for i, limit := range []*algorithm.Limit{&tenPerSecond, &fixed, &tokens, &slow} {
		t.Run(fmt.Sprint(limit.Kind.Tag(), i), func(t *testing.T) {
			now := int64(early)
			for i, calls := range []int64{1, 1, 7, 3, 1, 2, 1, 1, 40, 1} {
				argv := []any{limit.FastArg(1, calls), now}
				reply, err := s.Eval(context.Background(), timed(t, limit.FastScript()), []string{t.Name()}, argv...).Result()
				if err != nil || reply == int64(-1) {
					t.Fatalf("call %d: %v, %v", i, reply, err)
				}
				now += second / 7 * calls
			}
		})
	}
}
