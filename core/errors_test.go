package core_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

func TestRuleErrorText(t *testing.T) {
	for _, test := range []struct {
		err  core.RuleError
		want string
	}{
		{core.RuleError{Rule: "api", Field: "MaxCount", Value: -1, Why: "no"}, `core: rule "api": MaxCount = -1: no`},
		{core.RuleError{Field: "Paths", Value: "x\ny", Why: "no"}, `core: Paths = "x\ny": no`},
		{core.RuleError{Rule: "a\"b", Field: "Name", Value: "", Why: "no"}, `core: rule "a\"b": Name = "": no`},
		{core.RuleError{Field: "Redis", Value: nil, Why: "no"}, `core: Redis = <nil>: no`},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// An error names the value that was typed, and says what to type instead.
func TestErrorTexts(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	counter := limiter.MustCounter("x", core.PerHour(3))
	parse := func(text string) error { _, err := core.ParseLimit(text); return err }
	slots, several := core.InFlight(3), limiter.MustCounter("api", core.PerMinute(5), core.PerHour(50)).With(core.PerMinute(100))
	for _, test := range []struct {
		err  error
		want string
	}{
		{second(limiter.Counter("x", slots)), `core: rule "x": Limit = 3 at once: takes slots that are given back: use Limiter.Slots`},
		{second(limiter.Counter("x", core.PerHour(1), slots)), `core: rule "x": Limit = 3 at once: takes slots that are given back: use Limiter.Slots`},
		{second(counter.With(slots).Allow(background, "s")), `core: rule "x": Limit = 3 at once: takes slots that are given back: use Limiter.Slots`},
		{second(limiter.Counter("x", core.PerHour(1), core.Unlimited)), `core: rule "x": Also[0] = unlimited: cannot be counted: Unlimited is for Plans, LimitFor and a Counter's own limit`},
		{second(limiter.Counter("x", core.PerHour(1), core.Limit{})), `core: rule "x": Max = 0: must be 1 to 10^12`},
		{second(limiter.Counter("x", core.PerHour(1), core.PerHour(2))), `core: rule "x": Also[0] = 2/h: has the span and the algorithm of another limit beside it, and so its counter`},
		{second(limiter.Counter("x", core.PerCalendarDay(1, ""))), `core: rule "x": Calendar = day of no zone: needs a zone by name, as "Europe/Berlin" or "UTC", which means the same on every machine`},
		{second(limiter.Slots("x", 10_001)), `core: rule "x": Max = 10001: must be 1 to 10,000 for Concurrency, which keeps an entry for each call`},
		{second(limiter.Check(core.Rule{Name: "n", Limit: slots})), `core: rule "n": Limit = 3 at once: needs a middleware, which knows when a call ends: in a handler use Limiter.Slots`},
		{second(limiter.Check(core.Rule{Seconds: 1, Also: []core.Limit{slots}})), `core: Also[0] = 3 at once: needs a middleware, which knows when a call ends: in a handler use Limiter.Slots`},
		{second(limiter.Check(core.Rule{Seconds: 1, Plan: planOf(""), Plans: map[string]core.Limit{"pro": slots}})), `core: Plans["pro"] = 3 at once: needs a middleware, which knows when a call ends: in a handler use Limiter.Slots`},
		{second(limiter.Check()), `core: rules = []: must be at least one`},
		{second(limiter.Guard(core.Rule{Limit: core.Unlimited})), `core: Limit = unlimited: cannot be counted: Unlimited is for Plans, LimitFor and a Counter's own limit`},
		{second(limiter.Guard(core.Rule{Seconds: 1, Also: []core.Limit{core.PerHour(0)}})), `core: Also[0] = 0/h: Max must be 1 to 10^12`},
		{second(counter.AllowN(background, "s", 5)), `core: the cost is more than the limit can ever allow: 5 of 3/h`},
		{second(several.AllowN(background, "s", 60)), `core: the cost is more than the limit can ever allow: 60 of 50/h`},
		{second(several.AllowN(background, "s", 200)), `core: the cost is more than the limit can ever allow: 200 of 100/m`},
		{parse("5/day"), `core: Limit = "5/day": needs a zone, as in 5/day@UTC; for 24 hours from any moment write 5/24h`},
		{parse("5/month"), `core: Limit = "5/month": needs a zone, as in 5/month@UTC; for 30 days from any moment write 5/720h`},
		{parse("0/day"), `core: Limit = "0/day": counts "0", which is not a number from 1 to 10^12`},
		{parse("5/week"), `core: Limit = "5/week": has the span "week", which is not s, m, h or a duration such as 15m`},
		{parse("+5/s"), `core: Limit = "+5/s": counts "+5", which is not a number from 1 to 10^12`},
		{parse("5/s burst x"), `core: Limit = "5/s burst x": counts "x", which is not a number from 1 to 10^12`},
		{parse("5/s bursts 9"), `core: Limit = "5/s bursts 9": does not say how to count with "bursts 9": log, fixed, aligned or burst N`},
		{parse("5 per minute"), `core: Limit = "5 per minute": must be like 100/s, 5/15m log, 10/s burst 20, 1000/day@UTC, 3 at once, or unlimited`},
	} {
		if test.err == nil || test.err.Error() != test.want {
			t.Errorf("the error is\n%v, want\n%s", test.err, test.want)
		}
	}
}

// second returns the error of a call that returns another value too.
func second[T any](_ T, err error) error { return err }

// panicked returns the error that a function panics with.
func panicked(do func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	do()
	return nil
}
