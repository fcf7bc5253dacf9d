package rulefile

import (
	"os"
	"strings"
	"testing"
)

func TestCheckRequires(t *testing.T) {
	for _, test := range []struct{ require, want string }{
		{"api", ""},
		{"api login", ""},
		{"api logn", `limits.yaml: rule "logn": is required, and missing (did you mean "login"?); the rules there: api, login`},
	} {
		_, err := checkRules(t, Service{Require: strings.Fields(test.require)}, "name: api, limit: 1/s", "name: login, limit: 1/s")
		if got := errorText(err); got != test.want {
			t.Errorf("%s: %s", test.require, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A mistake in a rule is the only error about it, though its name may be missing then.
func TestCheckRequiresAfterMistakes(t *testing.T) {
	_, err := checkRules(t, Service{Require: []string{"api"}}, "nam: api, limit: 1/s")
	if err == nil || strings.Contains(err.Error(), "required") {
		t.Error(err)
	}
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
	checked, err := Check(Service{}, "testdata/good/complete.yaml")
	if err != nil {
		t.Fatal(err)
	}
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

// The example of a service's own test.
func TestCheckExample(t *testing.T) {
	path := write(t, "limits.yaml", "version: 1\nrules:\n  - {name: login, limit: 5/15m}\n")
	if _, err := Check(Service{Require: []string{"login"}}, path); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(Service{}, path); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
