package operate_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
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
		rule := core.Rule{Name: field.Name, Limit: core.PerHour(5)}
		switch field.Name {
		case "Plan":
			rule.Plans = map[string]core.Limit{"pro": core.PerHour(9)}
		case "Note":
			rule.Limit = core.PerHour(5).Log()
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

// failsOrPanics is an Identify that fails for callers with a header, and panics for those without a
// user.
func failsOrPanics(r core.Request) (string, error) {
	if r.Header("Authorization") != nil {
		return "", errVerify
	}
	return r.Value("user").(string), nil
}

func panics(core.Request) (string, error) { panic("on purpose") }

// attachFailing attaches rules whose functions fail.
func attachFailing(t *testing.T, limiter *core.Limiter) {
	t.Helper()
	limit := core.PerHour(5)
	fails := func(r core.Request) (string, error) { return "", errVerify }
	plans := map[string]core.Limit{"pro": core.PerHour(9)}
	attach(t, limiter,
		core.Rule{Name: "good", Limit: limit},
		core.Rule{Name: "key", Limit: limit, Key: fails}, core.Rule{Name: "dry key", Limit: limit, Key: fails, Mode: core.DryRun},
		core.Rule{Name: "soft key", Limit: limit, Key: fails, Mode: core.Soft}, core.Rule{Name: "panic", Limit: limit, Key: panics},
		core.Rule{Name: "plan", Limit: limit, Plan: fails, Plans: plans}, core.Rule{Name: "no plan", Limit: limit, Plan: func(core.Request) (string, error) { return "free", nil }, Plans: plans},
		core.Rule{Name: "limit", Limit: limit, LimitFor: func(core.Request) (core.Limit, error) { return core.Limit{Max: -5}, nil }},
		core.Rule{Name: "cost", Limit: limit, Cost: func(core.Request) int { return -3 }}, core.Rule{Name: "cost panics", Limit: limit, Cost: func(core.Request) int { panic("on purpose") }},
		core.Rule{Name: "skip", Limit: limit, Skip: func(core.Request) bool { panic("on purpose") }},
		core.Rule{Name: "login", Limit: limit, NeedLogin: true}, core.Rule{Name: "dry login", Limit: limit, NeedLogin: true, Mode: core.DryRun},
	)
}

// If a function of a rule fails or panics, that is an error of this rule.
func TestExplainFailingFunctions(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: failsOrPanics})
	attachFailing(t, limiter)
	for user, identify := range map[string]string{"": "Identify: panicked: interface conversion", "alice": "", "error": "Identify: " + errVerify.Error()} {
		info := operate.Call{Method: "GET", Path: "/", RemoteAddr: from1, User: user}
		if user == "error" {
			info.User, info.Header = "", map[string][]string{"Authorization": {"Bearer x"}}
		}
		x := explain(t, limiter, info)
		type failure struct {
			reason core.Reason
			text   string
		}
		failing := map[string]failure{
			"good": {core.Allowed, ""}, "key": {core.IdentifyFailed, "Key: " + errVerify.Error()}, "dry key": {core.DryRunExceeded, "Key: "},
			"soft key": {core.Allowed, "Key: "}, "panic": {"", "Key: panicked: on purpose"}, "plan": {core.Allowed, "Plan: " + errVerify.Error()},
			"no plan": {core.Allowed, `no plan "free"`}, "limit": {core.Allowed, "LimitFor: core: Max = -5"}, "cost": {core.Allowed, "Cost: returned -3"},
			"cost panics": {"", "Cost: panicked: on purpose"}, "skip": {core.Allowed, "Skip: panicked"}, "login": {core.Allowed, identify}, "dry login": {core.Allowed, identify},
		}
		switch user {
		case "":
			failing["login"], failing["dry login"] = failure{"", identify}, failure{"", identify}
		case "error":
			failing["login"] = failure{core.IdentifyFailed, identify}
		}
		refusing := "key"
		if user == "error" { // callers are identified before their keys are made
			refusing = "login"
		}
		for name, want := range failing {
			r := ruleOf(t, x, name)
			if text := strings.Join(r.Errors, ", "); r.Reason != want.reason || !strings.Contains(text, want.text) || (text == "") != (want.text == "") {
				t.Errorf("%s by %q: %s, %q; want %+v", name, user, r.Reason, text, want)
			}
		}
		if x.Reason != core.IdentifyFailed || x.Rule != refusing {
			t.Errorf("%v", x)
		}
	}
	explain(t, limiter, operate.Call{}) // a call without an address
	alone := newLimiter(t, core.Options{})
	attach(t, alone, core.Rule{Name: "panic", Limit: core.PerHour(5), Key: panics})
	if x := explain(t, alone, operate.Call{Method: "GET", Path: "/", RemoteAddr: from1}); x.Reason != "" || x.Rule != "" {
		t.Errorf("the call gets no answer, and is explained as %v", x)
	}
	if n := log.Count("level=WARN"); n > 0 {
		t.Errorf("%d warnings about calls that were only explained: %s", n, log.String())
	}
}

// Identify does not run for a call of somebody who is not logged in, nor for one that names the user.
func TestExplainWithoutIdentify(t *testing.T) {
	identify := func(core.Request) (string, error) {
		t.Error("Identify runs")
		return "mallory", nil
	}
	limiter := newLimiter(t, core.Options{Identify: identify})
	attach(t, limiter, core.Rule{Name: "login", Limit: core.PerHour(5), NeedLogin: true})
	call := operate.Call{Method: "GET", Path: "/", Anonymous: true}
	if x := explain(t, limiter, call); x.Reason != core.NotLoggedIn || x.User != "" {
		t.Errorf("without a user: %v", x)
	}
	call.User = "alice"
	if x := explain(t, limiter, call); x.User != "alice" || ruleOf(t, x, "login").Subject != "user:alice" {
		t.Errorf("of a user: %v", x)
	}
}
