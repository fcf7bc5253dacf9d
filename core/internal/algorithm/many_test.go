package algorithm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// crowdForm is several calls of one form for decide_many.lua, each on different keys. Each stands
// for a number of equal calls.
type crowdForm struct {
	equal int64
	calls [][]algorithm.Counter
}

// kindsOf returns the algorithms of all counters.
func kindsOf(forms []crowdForm) (kinds algorithm.KindSet) {
	for _, f := range forms {
		kinds |= algorithm.KindsOf(f.calls[0])
	}
	return kinds
}

// asked returns how many equal calls a script receives: if not all can fit, one more than can.
func (f *crowdForm) asked() int64 {
	asked := f.equal
	for _, c := range f.calls[0] {
		asked = min(asked, c.Limit.Max/c.Cost+1)
	}
	return asked
}

// manyArgs returns the keys and the arguments of decide_many.lua.
func manyArgs(forms []crowdForm) (keys []string, argv []any) {
	for i := range forms {
		f := &forms[i]
		argv = algorithm.AppendForm(argv, f.calls[0], f.asked(), len(f.calls))
		for _, counters := range f.calls {
			for _, c := range counters {
				keys = append(keys, string(c.Key))
			}
		}
	}
	return keys, argv
}

// crowds makes several crowds at once, on different keys. This process decides all calls one after
// the other. Redis decides them in one script, decide_many.lua, which leaves the uncommon cases to
// decide_equal.lua. Each call must get the same answer. crowds returns the verdicts on the first
// call of each crowd.
func (e *engines) crowds(forms []crowdForm) (first [][]algorithm.Verdict) {
	s := step{script: crowdsScript(kindsOf(forms)), said: "together"}
	keys, argv := manyArgs(forms)
	s.keys, s.argv = keys, append([]any{len(argv)}, argv...)
	var checks []func(reply any) error
	for _, f := range forms {
		for _, counters := range f.calls {
			equal := algorithm.AppendEqual(nil, counters, f.asked(), e.now)
			s.argv = append(append(s.argv, len(counters), len(equal)), equal...)
			s.said += fmt.Sprint(", ", f.equal, " times")
			want := make([][]algorithm.Verdict, f.equal)
			for i := range want {
				want[i] = make([]algorithm.Verdict, len(counters))
				e.process.Decide(context.Background(), counters, true, want[i])
			}
			passes := algorithm.Passes(counters, want[0])
			for _, c := range counters {
				s.said += fmt.Sprintf(" %s max %d cost %d", c.Key, c.Limit.Max, c.Cost)
				if passes {
					s.writes = append(s.writes, string(c.Key))
				}
			}
			first = append(first, want[0])
			checks = append(checks, func(reply any) error { return checkCrowd(joinedReply{reply, f.asked()}, counters, want) })
		}
	}
	s.check = func(reply any) error {
		replies, _ := reply.([]any)
		if len(replies) != len(checks) {
			return fmt.Errorf("the reply to %d crowds is %v", len(checks), reply)
		}
		for i, check := range checks {
			if err := check(replies[i]); err != nil {
				return fmt.Errorf("crowd %d: %w", i, err)
			}
		}
		return nil
	}
	e.add(s)
	return first
}

// joinedReply is the reply of crowdsScript to one crowd, and how many calls the crowd had.
type joinedReply struct {
	reply any
	asked int64
}

// read reads the reply: one string for each counter, or -1 for each counter, followed by the reply
// of decide_equal.lua.
func (r joinedReply) read(counters []algorithm.Counter, found []algorithm.Found) error {
	replies, _ := r.reply.([]any)
	alone := 0
	texts := make([]string, len(replies))
	for i, reply := range replies {
		if texts[i] = fmt.Sprint(reply); reply == int64(-1) {
			alone++
		}
	}
	switch {
	case alone == 0 && len(replies) == len(counters):
		return algorithm.ReadMany(texts, counters, r.asked, found)
	case alone == len(counters) && len(replies) == alone+1:
		values, _ := replies[alone].([]any)
		return algorithm.ReadEqual(values, counters, found)
	default:
		return fmt.Errorf("the reply for %d counters is %v", len(counters), replies)
	}
}

var crowdsScripts = map[algorithm.KindSet]*algorithm.Script{}

// crowdsScript returns decide_many.lua and decide_equal.lua in one script, which runs the second
// for each call that the first did not decide.
func crowdsScript(kinds algorithm.KindSet) *algorithm.Script {
	if crowdsScripts[kinds] == nil {
		var all []algorithm.Counter
		for _, kind := range algorithm.Kinds() {
			if kinds&(1<<kind) != 0 {
				all = append(all, algorithm.Counter{Limit: &algorithm.Limit{Kind: kind}})
			}
		}
		body := func(s *algorithm.Script) string { return strings.Replace(s.Text, scriptclock.Lines, "", 1) }
		crowdsScripts[kinds] = &algorithm.Script{Text: scriptclock.Lines +
			"local function many(KEYS, ARGV)\n" + body(algorithm.ManyScript(kinds)) + "end\n" +
			"local function equal(KEYS, ARGV)\n" + body(algorithm.EqualScript(all)) + "end\n" + manyThenEqual}
	}
	return crowdsScripts[kinds]
}

const manyThenEqual = `local length = ARGV[1] + 0
local replies = many(KEYS, {unpack(ARGV, 2, length + 1)})
local arg, first, answers = length + 2, 1, {}
while first <= #KEYS do
  local last, args = first + ARGV[arg] - 1, ARGV[arg + 1] + 0
  local answer = {unpack(replies, first, last)}
  if answer[1] == -1 then
    answer[#answer + 1] = equal({unpack(KEYS, first, last)}, {unpack(ARGV, arg + 2, arg + 1 + args)})
  end
  answers[#answers + 1] = answer
  first, arg = last + 1, arg + 2 + args
end
return answers
`

const otherFamilies, keysOfEach = 3, 2

var joinableFamilies []family

// drawOthers draws families, and returns several members of each.
func drawOthers(t *rapid.T) (others []*member) {
	if joinableFamilies == nil { // once, because it takes longer than a trace
		all := windowed(algorithm.SlidingWindow, 5, 1, 600_000, 100, algorithm.MaxPermits)
		all = append(all, windowed(algorithm.FixedWindow, 5, 1, 600_000, 100, algorithm.MaxPermits)...)
		joinableFamilies = append(all, buckets(t)...)
	}
	for i := range otherFamilies {
		f := rapid.SampledFrom(joinableFamilies).Draw(t, "other family")
		for n := range keysOfEach {
			others = append(others, &member{family: f, limit: f.limits[0], key: fmt.Sprint("other ", f.name, " ", i, " ", n)})
		}
	}
	return others
}

// join makes crowds on the members and on the others, and decides all of them in one script.
func (c *caller) join() {
	var forms []crowdForm
	own := c.counters(c.members)
	if own = slices.DeleteFunc(own, func(of algorithm.Counter) bool { return !algorithm.Joins([]algorithm.Counter{of}) }); len(own) > 0 {
		forms = append(forms, crowdForm{int64(rapid.IntRange(1, 6).Draw(c.T, "own calls")), [][]algorithm.Counter{own}})
	}
	free := keysOfEach
	for free > 0 && len(forms) < 4 {
		calls := rapid.IntRange(1, free).Draw(c.T, "calls of a form")
		forms = append(forms, c.formOfOthers(keysOfEach-free, calls))
		free -= calls
	}
	if rapid.Bool().Draw(c.T, "reversed") {
		slices.Reverse(forms)
	}
	first := 0
	verdicts := c.crowds(forms)
	for _, f := range forms {
		for _, counters := range f.calls {
			c.keepCharges(counters, verdicts[first])
			first++
		}
	}
	c.last = rapid.SampledFrom(verdicts[rapid.IntRange(0, len(verdicts)-1).Draw(c.T, "whose answers")]).Draw(c.T, "whose answer")
	c.look(c.others)
}

// formOfOthers draws a form for this many calls. They are on some of the other families, on their
// keys from this one on.
func (c *caller) formOfOthers(from, calls int) crowdForm {
	f := crowdForm{equal: int64(rapid.IntRange(1, 6).Draw(c.T, "equal calls"))}
	families := rapid.IntRange(1, 1<<otherFamilies-1).Draw(c.T, "of families")
	small := oneIn(c.T, 2, "small")
	var form []algorithm.Counter
	for i := range otherFamilies {
		if families&(1<<i) == 0 {
			continue
		}
		m := c.others[i*keysOfEach+from]
		m.limit = rapid.SampledFrom(m.family.limits).Draw(c.T, "limit")
		cost := max(1, c.cost(m))
		if small {
			cost = min(cost, 1+m.limit.Max/8)
		}
		form = append(form, algorithm.Counter{Limit: m.limit, Cost: cost})
	}
	for n := range calls {
		counters, at := slices.Clone(form), 0
		for i := range otherFamilies {
			if families&(1<<i) != 0 {
				m := c.others[i*keysOfEach+from+n]
				m.limit = form[at].Limit
				counters[at].Key = []byte(m.key)
				at++
			}
		}
		f.calls = append(f.calls, counters)
	}
	return f
}

// keepCharges notes the charges of a call, to be given back later.
func (c *caller) keepCharges(counters []algorithm.Counter, verdicts []algorithm.Verdict) {
	if algorithm.Passes(counters, verdicts) {
		for i := range counters {
			c.charges = append(c.charges, counters[i].Charged(&verdicts[i]))
		}
	}
}
