package algorithm_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// crowdForm is several calls of one form for decide.lua, each on different keys. Each stands
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

// op returns one of the calls.
func (f *crowdForm) op(counters []algorithm.Counter) algorithm.Op {
	return algorithm.Op{Mode: algorithm.AllOrNone, Counters: counters, Calls: f.asked()}
}

// manyArgs returns the keys and the arguments of decide.lua.
func manyArgs(forms []crowdForm, now int64) (keys []string, argv []any) {
	argv = []any{""}
	for i := range forms {
		f := &forms[i]
		op := f.op(f.calls[0])
		argv = op.AppendForm(argv, len(f.calls), now)
		for _, counters := range f.calls {
			for _, c := range counters {
				keys = append(keys, string(c.Key))
			}
		}
	}
	return keys, argv
}

// crowds makes several crowds at once, on different keys. This process decides all calls one after
// the other. Redis decides them in one script. Each call must get the same answer. crowds returns the
// verdicts on the first call of each crowd.
func (e *engines) crowds(forms []crowdForm) (first [][]algorithm.Verdict) {
	s := step{script: algorithm.DecideScript(kindsOf(forms)), said: "together"}
	s.keys, s.argv = manyArgs(forms, e.now)
	var checks []func(reply []any) error
	for _, f := range forms {
		for _, counters := range f.calls {
			s.said += fmt.Sprint(", ", f.equal, " times")
			want := make([][]algorithm.Verdict, f.equal)
			for i := range want {
				want[i] = e.ask(algorithm.NewOp(algorithm.AllOrNone, counters...))
			}
			passes := algorithm.Passes(counters, want[0])
			for _, c := range counters {
				s.said += fmt.Sprintf(" %s max %d cost %d", c.Key, c.Limit.Max, c.Cost)
				if passes {
					s.writes = append(s.writes, string(c.Key))
				}
			}
			first = append(first, want[0])
			at := 1 + 2*len(checks)
			for range counters {
				checks = append(checks, nil)
			}
			checks[(at-1)/2] = func(reply []any) error {
				own := append([]any{reply[0]}, reply[at:at+2*len(counters)]...)
				return checkCrowd(f.op(counters), own, f.asked(), want)
			}
		}
	}
	s.check = func(reply any) error {
		replies, _ := reply.([]any)
		if len(replies) != 1+2*len(checks) {
			return fmt.Errorf("the reply to %d counters is %v", len(checks), reply)
		}
		for i, check := range checks {
			if check == nil {
				continue
			}
			if err := check(replies); err != nil {
				return fmt.Errorf("crowd at %d: %w", i, err)
			}
		}
		return nil
	}
	e.add(s)
	return first
}

const otherFamilies, keysOfEach = 3, 2

var joinableFamilies []family

// drawOthers draws families, and returns several members of each.
func drawOthers(t *rapid.T) (others []*member) {
	if joinableFamilies == nil { // once, because it takes longer than a trace
		all := windowed(algorithm.SlidingWindow, 5, 1, 600_000, 100, algorithm.MaxPermits)
		all = append(all, windowed(algorithm.CalendarWindow, 5, 1, 600_000, 100, algorithm.MaxPermits)...)
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
	if own = slices.DeleteFunc(own, func(of algorithm.Counter) bool { return !of.Merges() || !of.Charges() }); len(own) > 0 {
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
