package operate_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// If any function of a rule panics, that is an error of its rule, and never ends a report.
func TestExplainWhateverFunctionPanics(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	ran := make(map[string]bool) // by the field
	var rules []core.Rule
	for i := range reflect.TypeFor[core.Rule]().NumField() {
		field := reflect.TypeFor[core.Rule]().Field(i)
		if field.Type.Kind() != reflect.Func {
			continue
		}
		rule := core.Rule{Name: field.Name, Limit: core.PerHour(5).Log()}
		if field.Name == "Plan" {
			rule.Plans = map[string]core.Limit{"pro": core.PerHour(9).Log()}
		}
		reflect.ValueOf(&rule).Elem().Field(i).Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value {
			ran[field.Name] = true
			panic("on purpose")
		}))
		rules = append(rules, rule)
	}
	attach(t, limiter, rules...)
	x := explain(t, limiter, operate.Call{Method: "GET", Path: "/", RemoteAddr: from1})
	for _, rule := range rules {
		if told := slices.Contains(ruleOf(t, x, rule.Name).Errors, rule.Name+": panicked: on purpose"); told != ran[rule.Name] {
			t.Errorf("%s ran: %t, and its panic was reported: %t", rule.Name, ran[rule.Name], told)
		}
	}
	if len(ran) < 5 {
		t.Errorf("only %v ran", ran)
	}
	inspect(t, limiter, "ip:192.0.2.1")
}
