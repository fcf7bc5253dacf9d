package rulefile

import (
	"runtime"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

func TestCheckRequires(t *testing.T) {
	for _, test := range []struct{ require, rule, want string }{
		{"api", "name: api, limit: 1/s", ""},
		{"api login", "name: api, limit: 1/s", ""},
		{"api", "nam: api, limit: 1/s", `limits.yaml:3:5: rule without a name: has no "name"`}, // though the name is missing
		{"api logn", "name: api, limit: 1/s", `limits.yaml: rule "logn": is required, and missing (did you mean "login"?); the rules there: api, login`},
	} {
		_, err := checkRules(t, Service{Require: strings.Fields(test.require)}, test.rule, "name: login, limit: 1/s")
		got := errorText(err)
		required := strings.Contains(got, "is required") == strings.Contains(test.want, "is required")
		if !strings.HasPrefix(got, test.want) || !required || (got == "") != (test.want == "") {
			t.Errorf("%s of %s: %s", test.require, test.rule, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Check refuses what Load refuses, but for what only a Limiter knows.
func TestCheckAgreesWithLoad(t *testing.T) {
	service := Service{Functions: &registered}
	for _, file := range append(corpus(t, "bad"), corpus(t, "good")...) {
		_, loaded := load(t, file)
		_, checked := Check(service, file)
		if errorText(loaded) != errorText(checked) {
			t.Errorf("Load: %v\nCheck: %v", loaded, checked)
		}
	}
	if _, err := Check(service); err != errNoFiles {
		t.Error(err)
	}
}

// StandIns has a function for each use, so that Load accepts the files.
func TestStandIns(t *testing.T) {
	checked := must(Check(Service{}, "testdata/good/complete.yaml"))
	uses := checked.Functions()
	functions, err := StandIns(uses...)
	if err != nil || len(uses) < 6 {
		t.Fatalf("%v, %v", uses, err)
	}
	if _, err := Load(newLimiter(t), functions, "testdata/good/complete.yaml"); err != nil {
		t.Errorf("with %v: %v", uses, err)
	}
	if _, err := StandIns(FunctionUse{Field: "plans", Name: "x"}); err == nil {
		t.Error("plans is a field without functions")
	}
}

func TestCheckedDiff(t *testing.T) {
	before, err1 := checkRules(t, Service{}, "name: api, limit: 1/s, plan: a, plans: {b: 2/s}")
	after, err2 := checkRules(t, Service{}, "name: api, limit: 2/s, plan: other, plans: {b: 2/s}")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	want := `rule "api": limit 1/s becomes 2/s: counters keep their use; rule "api": plan a becomes other: counters keep their use`
	if got := strings.Join(texts(before.Diff(after)), "; "); got != want {
		t.Error(got)
	}
}

// A program for operators shows the rules of a file with their places, and leaves no trace in the
// audit, as a service that begins to use them does.
func TestAttach(t *testing.T) {
	const rules = "name: api, limit: 100/s, plan: p, plans: {pro: 200/s}"
	functions, _ := StandIns(FunctionUse{Field: "plan", Name: "p"})
	checked := must(checkRules(t, Service{Functions: &functions}, rules, "name: b, limit: 5/m"))
	limiter := newLimiter(t)
	guard := must(checked.Attach(limiter))
	defer runtime.KeepAlive(guard)
	attached, _, err := operate.New(limiter).Rules()
	if err != nil || len(attached) != 2 || attached[1].Place != "limits.yaml:4:5" {
		t.Errorf("%+v, %v", attached, err)
	}
	if entries, err := operate.New(limiter).Audit(t.Context(), "", 10); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAttachRefuses(t *testing.T) {
	guessed, _ := checkRules(t, Service{}, "name: api, limit: 100/s, cost: rows")
	taken, _ := checkRules(t, Service{}, "name: taken, limit: 100/s")
	login, _ := checkRules(t, Service{}, "name: api, limit: 1/s, need_login: true")
	limiter := limitertest.New(t, core.Options{})
	defer runtime.KeepAlive(limiter.MustGuard(core.Rule{Name: "taken", Seconds: 1}))
	for want, checked := range map[string]*Checked{"given Service.Functions": guessed, `rule "taken"`: taken, "limits.yaml:3:5": login} {
		if _, err := checked.Attach(limiter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The limiter knows the keys of rules as they are written, also after a change.
func TestKeysAsTheyAreWritten(t *testing.T) {
	limiter := newLimiter(t)
	for key, want := range map[string]string{
		"global": "global", "header:X-Tenant": "header:X-Tenant", "[user, query:lang]": "[user, query:lang]", "tenant": "tenant", "ip": "ip",
	} {
		set := must(Load(limiter, registered, write(t, "limits.yaml", "version: 1\nrules: [{name: api, limit: 5/m, key: "+key+"}]")))
		guard := set.MustGuard("api")
		rules, _, _ := operate.New(limiter).Rules()
		if got := rules[len(rules)-1]; got.CountsBy != want || got.Rule.Name != "api" {
			t.Errorf("key %s: %q counts by %q", key, got.Rule.Name, got.CountsBy)
		}
		runtime.KeepAlive(guard)
		set.Close()
	}
}
