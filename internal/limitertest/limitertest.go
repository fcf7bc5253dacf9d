// Package limitertest makes limiters and calls for the tests of core and the packages below it.
package limitertest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

// Patient is a Timeout that a healthy Redis never needs, however busy the machine.
const Patient = extensiontest.Patient

// MostPermits is the largest Max, 10^12, or as much as an int holds.
const MostPermits = min(1_000_000_000_000, math.MaxInt-1)

// NoMax returns a number that is not a valid Max: the largest int or, on 32 bits, where that is
// valid, the smallest.
func NoMax() int {
	if MostPermits+1 == math.MaxInt {
		return math.MinInt
	}
	return math.MaxInt
}

// New makes a limiter that is closed with the test. Unless the options say otherwise, it logs
// nothing, and its Timeout is so long that a busy machine does not look like a failing store.
func New(t testing.TB, options core.Options) *core.Limiter {
	t.Helper()
	return extensiontest.NewLimiter(t, options)
}

// DeadRedis returns options with a Redis whose port refuses connections. However busy this machine
// is, a call ends with that refusal and not with its Timeout, which would be a different failure.
func DeadRedis(t testing.TB) core.Options {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	bounded.Cleanup(t, func() { _ = client.Close() })
	return core.Options{Redis: client, Timeout: Patient}
}

// WantRuleError checks that an error names the rule and the field, shows the start of the value,
// and gives a reason.
func WantRuleError(t testing.TB, err error, rule, field, value string) {
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

// Overridable attaches a rule with this limit and returns its overrides.
func Overridable(t testing.TB, limiter *core.Limiter, name string, limit core.Limit, also ...core.Limit) operate.Overrides {
	t.Helper()
	if _, err := limiter.Guard(core.Rule{Name: name, Limit: limit, Also: also}); err != nil {
		t.Fatal(err)
	}
	overrides, err := operate.New(limiter).Overrides(name)
	if err != nil {
		t.Fatal(err)
	}
	return overrides
}

// IsRefused reports whether an error is logged as one that an operator must fix.
func IsRefused(err error) bool {
	var failed *core.StoreError
	return errors.As(err, &failed) && failed.Class == core.StoreRefused
}

// failing is what a *testing.T and a *rapid.T have in common here.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Eventually waits until a condition holds.
func Eventually(t failing, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(Patient); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", Patient, what)
		}
	}
}

// AwaitDryRuns waits until what rules in DryRun do for the calls so far has ended.
func AwaitDryRuns(t failing, limiter *core.Limiter) {
	t.Helper()
	Eventually(t, "all dry runs have ended", func() bool { return limiter.Stats().DryRunsNow == 0 })
}

// Together runs a function in n goroutines that begin at once.
func Together(n int, do func(goroutine int)) {
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}
