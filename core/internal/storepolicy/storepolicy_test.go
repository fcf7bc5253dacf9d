package storepolicy_test

import (
	"math"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/storepolicy"
)

// The text of every policy is read back, with any spaces. A share that cannot be is not read.
func TestTextOfEveryPolicy(t *testing.T) {
	for text, want := range map[string]storepolicy.Policy{
		"": {}, "fail_open": storepolicy.FailOpen, " fail_closed ": storepolicy.FailClosed, "count_locally  0.25": storepolicy.CountLocally(0.25),
	} {
		read, ok := storepolicy.Parse(text)
		if again, _ := storepolicy.Parse(read.String()); !ok || read != want || again != want {
			t.Errorf("%q is read as %v, and that as %v; %t", text, read, again, ok)
		}
	}
	for _, text := range []string{"open", "fail_open 1", "count_locally", "count_locally 0", "count_locally 1.5", "count_locally NaN"} {
		if _, ok := storepolicy.Parse(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}

// Only a share of CountLocally can be wrong.
func TestCheck(t *testing.T) {
	for share, ok := range map[float64]bool{0.1: true, 1: true, 0: false, -1: false, 1.1: false, math.NaN(): false} {
		if why := storepolicy.CountLocally(share).Check(); (why == "") != ok {
			t.Errorf("a share of %v: %q", share, why)
		}
	}
	if why := (storepolicy.Policy{}).Check() + storepolicy.FailOpen.Check() + storepolicy.FailClosed.Check(); why != "" {
		t.Error(why)
	}
}
