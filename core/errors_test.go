package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// wantRuleError checks that an error says what is wrong: the rule, the field, the start of the value and a reason.
func wantRuleError(t testing.TB, err error, rule, field, value string) {
	t.Helper()
	var wrong *core.RuleError
	if !errors.As(err, &wrong) {
		t.Fatalf("the error is %v, want a *RuleError for %s", err, field)
	}
	if wrong.Rule != rule || wrong.Field != field || !strings.HasPrefix(fmt.Sprint(wrong.Value), value) {
		t.Errorf("the error is of rule %q, field %s, value %v; want %q, %s, %s", wrong.Rule, wrong.Field, wrong.Value, rule, field, value)
	}
	if len(wrong.Why) < 10 {
		t.Errorf("Why says only %q", wrong.Why)
	}
	for _, part := range []string{"core: ", field, wrong.Why} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err.Error(), part)
		}
	}
}

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
