package core_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/operate"
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
		{&core.StoreError{Class: core.StoreRefused, Err: errVerify}, "core: the store answered with an error: the session store is down"},
		{&core.StoreError{Class: core.StoreTimeout, Err: errVerify}, "core: the store did not answer: the session store is down"},
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

// argument returns a value to call a method with: one that does nothing, or else the zero one.
func argument(of reflect.Type) reflect.Value {
	for _, given := range []any{background, newView("GET", "/"), http.Header{}, httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)} {
		if reflect.TypeOf(given).AssignableTo(of) {
			return reflect.ValueOf(given)
		}
	}
	if of.Kind() != reflect.Func {
		return reflect.Zero(of)
	}
	return reflect.MakeFunc(of, func([]reflect.Value) (out []reflect.Value) {
		for i := range of.NumOut() {
			out = append(out, reflect.Zero(of.Out(i)))
		}
		return out
	})
}

// callZero calls a method, and returns its error, or what it panicked with.
func callZero(method reflect.Value) (err error) {
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		if i < method.Type().NumIn()-1 || !method.Type().IsVariadic() {
			in = append(in, argument(method.Type().In(i)))
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err, _ = p.(error)
			if err == nil {
				err = fmt.Errorf("panicked with %v", p)
			}
		}
	}()
	for _, out := range method.Call(in) {
		if failed, ok := out.Interface().(error); ok {
			err = failed
		}
	}
	return err
}

// hints are methods without an error, which say nothing of a Limiter that was never made.
var hints = []string{"ActHint", "Counts", "SubjectHint"}

// A Limiter that New did not make, nil or zero, does nothing, and every method says why.
func TestLimiterThatWasNeverMade(t *testing.T) {
	const want = "core: limiter = <nil>: was never made: use core.New, and check its error"
	for name, limiter := range map[string]*core.Limiter{"nil": nil, "zero": new(core.Limiter)} {
		for _, of := range []reflect.Value{reflect.ValueOf(limiter), reflect.ValueOf(operate.New(limiter))} {
			for i := range of.NumMethod() {
				method := of.Type().Method(i).Name
				if err := callZero(of.Method(i)); fmt.Sprint(err) != want && (err != nil || !slices.Contains(hints, method)) {
					t.Errorf("%s of the %s Limiter: %v, want %s", method, name, err, want)
				}
			}
		}
	}
}

// A handle or a set that no Limiter made does nothing, and says so.
func TestZeroHandles(t *testing.T) {
	for _, handles := range []struct {
		field string
		zero  []any
	}{
		{"handle", []any{
			core.Counter{}, core.Counter{}.With(core.PerHour(1)).WithStorePolicy(core.FailOpen), core.Pacer{}, core.Pacer{}.WithStorePolicy(core.FailOpen),
			core.Log{}, core.Slots{}, core.Slots{}.LostAfter(time.Minute),
		}},
		{"set", []any{new(core.RuleSet), (*core.RuleSet)(nil)}},
	} {
		for _, zero := range handles.zero {
			of := reflect.ValueOf(zero)
			for i := range of.NumMethod() {
				var wrong *core.RuleError
				err := callZero(of.Method(i))
				if method := of.Type().Method(i); fails(method.Func.Type()) && (!errors.As(err, &wrong) || wrong.Field != handles.field) {
					t.Errorf("%s of the zero %T: %v", method.Name, zero, err)
				}
			}
		}
	}
}

// fails reports whether a function returns an error, or nothing at all.
func fails(function reflect.Type) bool {
	for i := range function.NumOut() {
		if function.Out(i) == reflect.TypeFor[error]() {
			return true
		}
	}
	return function.NumOut() == 0
}

// No method of a zero value dereferences nil.
func TestZeroValues(t *testing.T) {
	for _, zero := range []any{
		core.Counter{}, core.Pacer{}, core.Log{}, core.Slots{}, operate.Overrides{}, new(core.Guard), (*core.Guard)(nil), new(core.Check),
		(*core.Check)(nil), new(core.RuleSet), (*core.RuleSet)(nil), core.Answer{}, core.OwnLimits{}, operate.Explanation{},
		core.Limit{}, core.Calendar{}, core.Rule{}, core.StorePolicy{}, core.Histogram{}, core.Stats{}, core.Options{}, core.ClientIP{},
		new(core.Refusal), new(adapter.Response), new(core.StoreError), new(core.RuleError), operate.Override{}, operate.Reference{}, core.Threshold{},
	} {
		of := reflect.ValueOf(zero)
		for i := range of.NumMethod() {
			var broken runtime.Error
			if err := callZero(of.Method(i)); errors.As(err, &broken) {
				t.Errorf("%s of %T: %v", of.Type().Method(i).Name, zero, err)
			}
		}
	}
}
