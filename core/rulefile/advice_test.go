package rulefile

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// checkRules checks a rules file with these rules, each on a line.
func checkRules(t *testing.T, service Service, rules ...string) (*Checked, error) {
	t.Helper()
	return CheckText(service, "limits.yaml", "version: 1\nrules:\n  - {"+strings.Join(rules, "}\n  - {")+"}\n")
}

const byAddress = "name: all, limit: 1000/m"

func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		name  string
		rules []string
		want  string // the place, the rule and the code of each warning
	}{
		{"nothing", []string{"name: api, limit: 100/s, also: [5000/10m]"}, ""},
		{"header", []string{"name: api, limit: 1/s, key: header:X-Api-Key"}, "3:34 api caller_chooses_key"},
		{"user and header", []string{"name: api, limit: 1/s, need_login: true, key: [user, header:X-Device]"}, "3:52 api caller_chooses_key"},
		{"query", []string{"name: api, limit: 1/s, key: query:q"}, "3:34 api caller_chooses_key"},
		{"host", []string{"name: api, limit: 1/s, key: host"}, "3:34 api caller_chooses_key"},
		{"header beside address", []string{"name: api, limit: 1/s, key: header:X-Api-Key", byAddress}, ""},
		{"header beside user", []string{"name: api, limit: 1/s, key: header:X-Api-Key", "name: u, limit: 1/s, need_login: true"}, ""},
		{"header beside a dry run", []string{"name: api, limit: 1/s, key: header:X-Api-Key", byAddress + ", mode: dry_run"}, "3:34 api caller_chooses_key"},
		{"header beside address elsewhere", []string{"name: api, limit: 1/s, key: header:X-Api-Key", byAddress + ", paths: [/b]"}, "3:34 api caller_chooses_key"},
		{"header beside address on the same path", []string{"name: api, limit: 1/s, key: header:X-Api-Key, paths: [/b]", byAddress + ", paths: [/a, /b]"}, ""},
		{"header beside address for another method", []string{"name: api, limit: 1/s, key: header:X-Api-Key", byAddress + ", methods: [GET]"}, "3:34 api caller_chooses_key"},
		{"param", []string{"name: item, limit: 1/s, key: param:id"}, ""},
		{"login by account", []string{"name: login, limit: 5/15m, key: value:account, on_store_error: fail_closed", byAddress}, "3:38 login login_by_account"},
		{"sign-in by its path", []string{`name: a, limit: 5/15m, paths: [/v1/sign-in], key: ["param:name", "query:tenant"], on_store_error: fail_closed`, byAddress},
			"3:56 a login_by_account"},
		{"login by account and address", []string{"name: login, limit: 5/15m, key: [value:account, ip], on_store_error: fail_closed"}, ""},
		{"login by a function", []string{"name: login, limit: 5/15m, key: tenant, on_store_error: fail_closed"}, ""},
		{"login fails open", []string{"name: login, limit: 5/15m"}, "3:5 login login_fails_open"},
		{"login fails open in words", []string{"name: password reset, limit: 5/15m, on_store_error: fail_open"}, "3:58 password reset login_fails_open"},
		{"login counts locally", []string{"name: login, limit: 5/15m, on_store_error: count_locally 0.5"}, ""},
		{"login in a dry run", []string{"name: login, limit: 5/15m, mode: dry_run"}, ""},
		{"no login", []string{"name: blogins, limit: 5/15m", "name: catalog in, limit: 1/s"}, ""},
		{"limit beside also", []string{"name: a, limit: 100/m, also: [50/h]"}, "3:35 a never_decides"},
		{"log beside also", []string{"name: a, limit: 100/m log, also: [100/2m]"}, "3:39 a never_decides"},
		{"a log beside a window", []string{"name: a, limit: 100/m, also: [100/m log]"}, "3:35 a never_decides"},
		{"a window around the end of a fixed one", []string{"name: a, limit: 100/m, also: [60/h fixed]"}, ""},
		{"fixed beside also", []string{"name: a, limit: 100/m fixed, also: [100/m]"}, "3:41 a never_decides"},
		{"also beside limit", []string{"name: a, limit: 50/h, also: [50/m]"}, "3:34 a never_decides"},
		{"two also", []string{"name: a, limit: 1/s, also: [100/m, 90/h]"}, "3:33 a never_decides"},
		{"a calendar's month beside a longer span", []string{"name: a, limit: 100/month@UTC, also: [100/800h]"}, "3:43 a never_decides"},
		{"a calendar's month", []string{"name: a, limit: 100/month@UTC, also: [100/48h]"}, ""},
		{"a bucket", []string{"name: a, limit: 10/s burst 50, also: [50/10s]"}, "3:43 a never_decides"},
		{"a slow bucket", []string{"name: a, limit: 1/s burst 50, also: [50/10s]"}, ""},
		{"calls in flight", []string{"name: a, limit: 10 at once, also: [5/s]"}, ""},
		{"plan", []string{"name: a, limit: 10/s, also: [1000/h], plan: p, plans: {big: 2000/m, none: unlimited}"}, "3:34 a never_decides"},
		{"exceptions", []string{"name: a, limit: 1/s, except: [/**]"}, "3:35 a limits_nobody"},
		{"a method", []string{"name: a, limit: 1/s, methods: [GETT, GET]"}, "3:36 a unknown_method"},
		{"only a wrong method", []string{"name: a, limit: 1/s, methods: [GETT]"}, "3:36 a limits_nobody"},
		{"a key like one", []string{"name: a, limit: 1/s, key: usr"}, "3:32 a key_like_function"},
		{"two rules", []string{"name: login, limit: 5/15m", "name: a, limit: 1/s, key: host", "name: b, limit: 1/s, need_login: true, paths: [/b]"},
			"3:5 login login_fails_open"},
	} {
		t.Run(test.name, func(t *testing.T) { wantWarnings(t, test.want, test.rules...) })
	}
}

func wantWarnings(t *testing.T, want string, rules ...string) {
	t.Helper()
	checked := must(checkRules(t, Service{}, rules...))
	var got []string
	for _, w := range checked.Warnings() {
		got = append(got, fmt.Sprintf("%d:%d %s %s", w.Place.Line, w.Place.Column, w.Rule, w.Code))
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A key is taken for a function only where the functions are not known.
func TestNoWarningOfARegisteredKey(t *testing.T) {
	functions := must(StandIns(FunctionUse{Field: "key", Name: "usr"}))
	checked, err := checkRules(t, Service{Functions: &functions}, "name: a, limit: 1/s, key: usr")
	if err != nil || len(checked.Warnings()) > 0 {
		t.Errorf("%v, %v", checked.Warnings(), err)
	}
}

// goNames are the names that fields have in Go and nowhere in a file.
var goNames = func() *regexp.Regexp {
	var names []string
	for _, of := range []reflect.Type{reflect.TypeFor[core.Rule](), reflect.TypeFor[core.Ban](), reflect.TypeFor[core.Limit]()} {
		for field := range of.Fields() {
			names = append(names, field.Name)
		}
	}
	for _, kind := range algorithm.Kinds() {
		names = append(names, kind.Properties().Name)
	}
	return regexp.MustCompile(`\b(` + strings.Join(append(names, "FailClosed", "Log"), "|") + `)\b`)
}()

// Messages about files have no words of Go.
func TestSentencesOfFiles(t *testing.T) {
	function := func(core.Request) (string, error) { return "", nil }
	cost := func(core.Request) int { return 1 }
	bucket, none := core.PerSecond(5).Bucket(0), core.Ban{After: -1, For: -1}
	seen := make(map[string]bool)
	for _, rule := range []core.Rule{
		{}, {Seconds: -1}, {Seconds: 1, Limit: bucket}, {MaxCount: 1, Limit: bucket},
		{Limit: bucket, Lease: 1, Warn: []float64{1, 0.5}, Ban: none, OnStoreError: core.CountLocally(2)},
		{Limit: bucket, Note: func(core.Request) string { return "" }, Also: []core.Limit{bucket}, Plan: function, Lease: 10},
		{Limit: bucket, Plans: map[string]core.Limit{"a": core.PerHour(1)}, Ban: core.Ban{After: 1}},
		{Limit: bucket, Cost: cost, Estimate: cost, Lease: 1, Bill: core.BillTerms{MaxDebt: 11}}, {Limit: bucket, Bill: core.BillTerms{MaxDebt: 1}},
		{Limit: core.PerDay(100_000_000).Bucket(0), OnStoreError: core.CountLocally(1. / 3), Warn: []float64{1, 2, 3, 4, 5}},
		{Limit: bucket, Ban: core.Ban{After: 1, For: time.Hour, Max: 1}, Plan: function, Plans: map[string]core.Limit{"a": bucket}, LimitFor: func(core.Request) (core.Limit, error) { return bucket, nil }},
		{Limit: bucket, Mode: core.Soft, Ban: none, Lease: 1, OnStoreError: core.FailClosed, Paths: []string{"x"}, Methods: []string{"get"}, Message: "\xff"},
	} {
		rule.Name = "n"
		for _, wrong := range rule.Check(nil) {
			seen[wrong.Code] = true
			if name := goNames.FindString(sentence(wrong)); name != "" {
				t.Errorf("%s: %q has the word %s", wrong.Code, sentence(wrong), name)
			}
		}
	}
	for _, f := range rulefield.Table {
		for _, r := range append(f.Needs, f.Excludes...) {
			if !seen[r.Code] && r.Field != "Name" { // rules of files have one
				t.Errorf("no rule makes the mistake %s", r.Code)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("%d mistakes only", len(seen))
	}
}

// The message about a name that stands for two things on a Limiter has none either.
func TestSentencesOfNames(t *testing.T) {
	hourly := core.Rule{Name: "api", Limit: core.PerHour(5)}
	soft := hourly
	soft.Mode = core.Soft
	for _, rule := range []core.Rule{hourly, soft} {
		limiter := newLimiter(t)
		limiter.MustGuard(rule)
		for _, other := range []string{"mode: soft", "also: [9/24h]"} {
			set := must(Load(limiter, Functions{}, write(t, "limits.yaml", "version: 1\nrules: [{name: api, limit: 5/h, "+other+"}]")))
			_, err := set.Guard("api")
			if taken := rule.Mode == core.Soft && other == "mode: soft"; taken != (err == nil) {
				t.Errorf("%+v and %s: %v", rule, other, err)
			}
			if err != nil && goNames.MatchString(err.Error()) {
				t.Error(err)
			}
		}
	}
}

func TestFieldsOfFiles(t *testing.T) {
	for in, want := range map[string]fieldPath{
		"MaxCount":       {"max_count", "", -1},
		"Limit.Max":      {"limit", "", -1},
		"Ban.After":      {"ban", "after", -1},
		"Also[2]":        {"also", "", 2},
		`Plans["a.\"b"]`: {"plans", `a."b`, -1},
		`Plans["3"]`:     {"plans", "3", -1},
	} {
		if got := fieldOf(in); got != want {
			t.Errorf("%s is %+v, want %+v", in, got, want)
		}
	}
}
