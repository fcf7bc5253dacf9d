package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// mistakesOf returns the fields and codes of what Check finds.
func mistakesOf(rule core.Rule, on *core.Limiter) (found []string) {
	for _, wrong := range rule.Check(on) {
		found = append(found, wrong.Field+" "+wrong.Code)
	}
	return found
}

// Check returns every mistake of a rule, and each has a code. Nothing follows from a wrong limit.
func TestEveryMistakeOfARule(t *testing.T) {
	bare := newLimiter(t, core.Options{})
	able := newLimiter(t, core.Options{
		Identify:    func(core.Request) (string, error) { return "", nil },
		OnThreshold: func(context.Context, core.Threshold) {},
	})
	many := core.Rule{
		Name: "größe", Limit: core.PerSecond(5).Bucket(0), Message: "\xff", NeedLogin: true,
		Also:      []core.Limit{core.PerSecond(6).Bucket(0), core.PerDay(1), core.PerDay(-1), core.PerDay(2)},
		Plans:     map[string]core.Limit{"": core.PerSecond(1).Bucket(1), "a": core.PerDay(0), "b": core.PerDay(1), "c": core.Unlimited},
		Note:      func(core.Request) string { return "" },
		Lease:     6,
		Overrides: true,
		Warn:      []float64{1, 0.5},
		Ban:       core.Ban{After: -1, For: -1},
		Paths:     []string{"a", "/b", "c"}, Except: []string{"d"}, Methods: []string{"get", "post"},
		OnStoreError: core.CountLocally(2),
	}
	itself := []string{
		"Plans no_plan", "Lease lease_and_overrides", "Lease lease_and_warn",
		"Name name_form", "Also[0] same_counter", "Also[2] max_range", "Also[3] same_counter",
		"Plans plan_without_name", `Plans["a"] max_range`,
		"Ban.After ban_after", "Ban.For ban_for", "Warn warn_order",
		"Paths path_pattern", "Paths path_pattern", "Except path_pattern", "Methods method", "Methods method",
		"OnStoreError store_policy_share", "Message message_form",
		"Note note_without_log", "Lease lease_range", `Plans["b"] not_overridable`,
	}
	for name, on := range map[string]*core.Limiter{"no Limiter": nil, "a zero Limiter": {}, "a Limiter that can do all": able} {
		if got := mistakesOf(many, on); !slices.Equal(got, itself) {
			t.Errorf("%s: %q, want %q", name, got, itself)
		}
	}
	want := append(itself, "NeedLogin no_identify", "Warn no_on_threshold")
	if got := mistakesOf(many, bare); !slices.Equal(got, want) {
		t.Errorf("a Limiter without Identify and OnThreshold: %q, want %q", got, want)
	}
	many.Limit, many.Lease, many.Overrides, many.Warn = core.Limit{}, 1, false, nil
	many.Message, many.Also, many.Plans, many.Ban, many.Paths, many.Except, many.Methods = "", nil, nil, core.Ban{}, nil, nil, nil
	if got, want := mistakesOf(many, able), []string{"Seconds no_limit", "Name name_form", "OnStoreError store_policy_share"}; !slices.Equal(got, want) {
		t.Errorf("without a limit: %q, want %q", got, want)
	}
	if got := mistakesOf(core.Rule{Seconds: 60, NeedLogin: true, Warn: []float64{1}}, able); got != nil {
		t.Errorf("of a sound rule: %q", got)
	}
}

// The error for several rules joins everything that Check finds in all of them.
func TestErrorsJoinEveryMistake(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rules := []core.Rule{
		{Name: "a", Seconds: 60, Lease: -1, Methods: []string{"get"}},
		{Name: "b", Limit: core.InFlight(1), NeedLogin: true, Count: func(int) bool { return true }},
	}
	set := newRuleSet(t, limiter)
	_, guardErr := limiter.Guard(rules...)
	_, checkErr := limiter.Check(rules...)
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"Guard":   {guardErr, []string{"lease_range", "method", "no_identify"}},
		"Check":   {checkErr, []string{"lease_range", "method", "count_in_handler", "slots_in_handler", "no_identify"}},
		"Replace": {set.Replace("1", rules...), []string{"lease_range", "method", "no_identify"}},
	} {
		if got := codesOf(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	_, err := limiter.Guard(rules[1])
	if wrong, ok := err.(*core.RuleError); !ok || wrong.Code != "no_identify" {
		t.Errorf("a single mistake is %T: %v", err, err)
	}
}

// codesOf returns the codes of joined errors.
func codesOf(err error) (codes []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			codes = append(codes, codesOf(one)...)
		}
		return codes
	}
	if wrong := (*core.RuleError)(nil); errors.As(err, &wrong) {
		codes = append(codes, wrong.Code)
	}
	return codes
}

// A share is checked for each limit that it would count, and the longest ban against the first.
func TestMistakesOfTwoFields(t *testing.T) {
	fine := core.PerDay(100_000_000).Bucket(0)
	rule := core.Rule{
		Limit: fine, Also: []core.Limit{core.PerHour(9)}, OnStoreError: core.CountLocally(1. / 3),
		Plan: planOf("pro"), Plans: map[string]core.Limit{"pro": fine}, Ban: core.Ban{After: 1, For: time.Hour, Max: time.Minute},
	}
	want := []string{"Ban.Max ban_max", "OnStoreError store_policy_limit", "OnStoreError store_policy_limit"}
	if got := mistakesOf(rule, nil); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
