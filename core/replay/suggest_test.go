package replay_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
)

// A suggested limit is the one that a search over replays finds: it refuses few enough subjects, and the
// next smaller one does not.
func TestSuggestionsAgainstReplays(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"sliding window": core.PerMinute(3), "fixed window": core.PerMinute(3).Fixed(), "log": core.PerMinute(3).Log(),
		"bucket": core.PerMinute(20).Bucket(3), "aligned": core.PerMinute(3).Aligned(), "calendar": core.PerCalendarDay(3, "Europe/Berlin"), "in flight": core.InFlight(3),
	} {
		t.Run(name, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(rand.Uint64(), 27))
			var calls []call
			for range 400 {
				calls = append(calls, call{
					at: draw.Float64() * 600, took: draw.Float64() * 20, from: fmt.Sprintf("192.0.2.%d", int(draw.ExpFloat64()*8)%40),
					target: "GET /?q=" + strings.Repeat("x", draw.IntN(3)), status: 200 + draw.IntN(2),
				})
			}
			slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.at+a.took, b.at+b.took) })
			rule := core.Rule{
				Name: "r", Limit: limit, Cost: func(q core.Request) int { return 1 + len(q.Query("q")) },
				Count: func(status int) bool { return status == 200 }, Ban: core.Ban{After: 2, For: time.Minute},
			}
			if limit.Algorithm == core.Concurrency {
				rule.Cost, rule.Count = nil, nil
			}
			percent := []float64{75, 90, 99.9}[draw.IntN(3)]
			tryDraw(t, calls, rule, percent)
		})
	}
}

// tryDraw compares the suggestion for a rule with replays by the suggested limit and the next smaller.
func tryDraw(t *testing.T, calls []call, rule core.Rule, percent float64) {
	options := replay.Options{Format: form, Suggest: percent, Guards: []replay.Guard{{Rules: []core.Rule{rule}}}}
	report, err := replay.Run(t.Context(), options, logOf(calls...))
	if err != nil {
		t.Fatal(err)
	}
	s := report.Rules[0].Suggestions[0]
	if s.RefusedNow != report.Rules[0].Hit || s.Subjects != report.Rules[0].Subjects {
		t.Errorf("%v, but %d of %d subjects were refused", s, report.Rules[0].Hit, report.Rules[0].Subjects)
	}
	few := func(refused int) bool {
		return float64(refused) < (100-percent)/100*float64(s.Subjects) || refused == 0
	}
	at := hit(t, calls, rule, s.Suggested)
	if at != s.Refused || !few(at) {
		t.Errorf("%v (%v %%), but %v refuses %d", s, percent, s.Suggested, at)
	}
	smaller := s.Suggested
	size := &smaller.Max
	if smaller.Algorithm == core.TokenBucket {
		size = &smaller.Burst
	}
	if *size--; *size >= 3 && few(hit(t, calls, rule, smaller)) { // below 3 there are costs that never fit, of nobody
		t.Errorf("%v (%v %%), but %v refuses few enough", s, percent, smaller)
	}
}

// hit returns how many subjects a limit refuses.
func hit(t *testing.T, calls []call, rule core.Rule, limit core.Limit) int {
	rule.Limit = limit
	_, report := run(t, calls, rule)
	return report.Rules[0].Hit
}

// A rule is suggested for by itself, for each of its limits, and without the callers who have plans.
func TestSuggestionsOfARule(t *testing.T) {
	rules := []core.Rule{
		{Name: "tight", Limit: core.PerHour(1)},
		{Name: "r", Seconds: 60, MaxCount: 9, Also: []core.Limit{core.PerHour(9).Fixed()}, Plan: planOf, Plans: map[string]core.Limit{"pro": core.PerMinute(99)}},
	}
	calls := append(every(call{}, 0, 1, 100), every(call{plan: "pro", from: "192.0.2.2"}, 101, 102, 103, 104)...)
	report, err := replay.Run(t.Context(), replay.Options{
		Format: form, Fields: map[string]string{"value:plan": "plan"}, Suggest: 99, Guards: []replay.Guard{{Rules: rules}},
	}, logOf(calls...))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v%v", report.Rules[0].Suggestions, report.Rules[1].Suggestions)
	want := "[4/h refuses 0 (0 %); 1/h refuses 2 of 2 subjects (100 %)]" +
		"[2/m refuses 0 (0 %); 9/m refuses 0 of 1 subject (0 %) 3/h fixed refuses 0 (0 %); 9/h fixed refuses 0 of 1 subject (0 %)]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Callers for whom the rule's own limit holds are counted, also if it holds because Plan or LimitFor has
// failed or returned what cannot be counted. Others are left out.
func TestSuggestionsByPlansAndComputedLimits(t *testing.T) {
	own := core.PerMinute(9)
	plan := func(name string, err error) core.Rule {
		return core.Rule{Plans: map[string]core.Limit{"pro": core.PerMinute(99), "all": core.Unlimited}, Plan: func(core.Request) (string, error) { return name, err }}
	}
	computed := func(limit core.Limit, err error) core.Rule {
		return core.Rule{LimitFor: func(core.Request) (core.Limit, error) { return limit, err }}
	}
	for name, test := range map[string]struct {
		rule    core.Rule
		counted bool
	}{
		"no plan": {plan("", nil), true}, "a plan": {plan("pro", nil), false}, "an unlimited plan": {plan("all", nil), false},
		"an unknown plan": {plan("prol", nil), true}, "no answer about the plan": {plan("pro", errors.New("of the test")), true},
		"no limit": {computed(core.Limit{}, nil), true}, "a limit": {computed(core.PerMinute(99), nil), false}, "no bound": {computed(core.Unlimited, nil), false},
		"the own limit": {computed(own, nil), true}, "a wrong limit": {computed(core.PerMinute(-1), nil), true},
		"no answer about the limit": {computed(core.PerMinute(99), errors.New("of the test")), true},
	} {
		t.Run(name, func(t *testing.T) {
			test.rule.Name, test.rule.Limit = "r", own
			report, err := replay.Run(t.Context(), replay.Options{Format: form, Suggest: 99, Guards: []replay.Guard{{Rules: []core.Rule{test.rule}}}}, logOf(every(call{}, 0, 1)...))
			if err != nil {
				t.Fatal(err)
			}
			want := "[]"
			if test.counted {
				want = "[2/m refuses 0 (0 %); 9/m refuses 0 of 1 subject (0 %)]"
			}
			if got := fmt.Sprint(report.Rules[0].Suggestions); got != want {
				t.Errorf("the suggestions are %s, want %s", got, want)
			}
		})
	}
}
