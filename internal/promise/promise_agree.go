package promise

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// EnginesAgree: an engine and this process give the same answers to the same calls at the same
// times, in every field of every decision, with several rules decided together, and in every
// header.
func EnginesAgree(t *testing.T, e Engine) {
	lab := e.newLab(t)
	rapid.Check(t, func(rt *rapid.T) {
		rules := rapid.SliceOfN(rapid.SampledFrom(limits()), 1, 4).Draw(rt, "limits")
		n := rapid.OneOf(rapid.IntRange(1, 40), rapid.Just(30)).Draw(rt, "length")
		calls := rapid.SliceOfN(plannedCalls, n, n).Draw(rt, "calls")
		style := rapid.SampledFrom([]core.HeaderStyle{core.HeadersDraft10, core.HeadersDraft11}).Draw(rt, "headers")
		var wrong error
		lab.bubble(t, func(t *testing.T, options core.Options) {
			options.Headers = style
			inProcess := options
			inProcess.Redis = nil
			wrong = agree(watchGuard(t, options, rulesOf(rules)...), watchGuard(t, inProcess, rulesOf(rules)...), rules, calls)
		})
		if wrong != nil {
			rt.Fatal(wrong)
		}
	})
}

// plannedCall is one call of a trace with several rules.
type plannedCall struct {
	caller int
	weight int
	wait   time.Duration // in 32nds of a window,
	of     int           // of this rule
	exact  bool          // or as long as the last refusal said
}

var plannedCalls = rapid.Custom(func(t *rapid.T) plannedCall {
	return plannedCall{
		caller: rapid.IntRange(0, 1).Draw(t, "caller"),
		weight: rapid.SampledFrom([]int{1, 1, 1, 0, 2, 3}).Draw(t, "weight"),
		wait:   rapid.SampledFrom([]time.Duration{0, 0, 0, 1, 3, 10, 32, 33, 100}).Draw(t, "32nds of a window"),
		of:     rapid.IntRange(0, 3).Draw(t, "of"),
		exact:  rapid.Bool().Draw(t, "as told"),
	}
})

func rulesOf(limits []namedLimit) (rules []core.Rule) {
	for i, l := range limits {
		rule := ruleOf(fmt.Sprint("rule", i), l.Limit)
		rule.Cost = weigh
		rules = append(rules, rule)
	}
	return rules
}

// agree makes the same calls to both guards.
func agree(one, other *watchedGuard, rules []namedLimit, calls []plannedCall) error {
	for i, planned := range calls {
		wait := planned.wait * rules[planned.of%len(rules)].Window / 32
		if planned.exact && !one.last.Allowed {
			wait = one.last.RetryAfter
		}
		time.Sleep(wait.Truncate(time.Microsecond))
		got, want := one.admit(planned), other.admit(planned)
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("visit %d, %+v:\n\t%+v, and in this process\n\t%+v", i, planned, got, want)
		}
	}
	return nil
}

// outcome is everything that is visible of an answer, except its source.
type outcome struct {
	status   int
	header   http.Header
	decision string
}

func (d *watchedGuard) admit(planned plannedCall) outcome {
	v := callBy(context.Background(), callerNamed(planned.caller))
	v.Values[weight] = planned.weight
	got := outcome{status: status(d.Check(v)), header: v.Response}
	last := d.last
	last.Source, last.All = "", nil
	for _, each := range d.last.All {
		each.Source = ""
		last.All = append(last.All, each)
	}
	got.decision = fields(last)
	return got
}
