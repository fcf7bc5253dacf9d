package rulefile

import (
	"fmt"
	"strings"
	"testing"
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
		{"also beside an overridden limit", []string{"name: a, limit: 50/h, also: [50/m], overrides: true"}, ""},
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
	checked, err := checkRules(t, Service{}, rules...)
	if err != nil {
		t.Fatal(err)
	}
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
	functions, err := StandIns(FunctionUse{Field: "key", Name: "usr"})
	if err != nil {
		t.Fatal(err)
	}
	checked, err := checkRules(t, Service{Functions: &functions}, "name: a, limit: 1/s, key: usr")
	if err != nil || len(checked.Warnings()) > 0 {
		t.Errorf("%v, %v", checked.Warnings(), err)
	}
}
