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
var hints = []string{"ActHint", "SubjectHint"}

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
