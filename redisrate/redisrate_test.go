package redisrate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/redisrate"
)

// The tests on Redis, and those beside redis_rate, are in internal/migrating.

func newLimiter(t *testing.T) *redisrate.Limiter {
	t.Helper()
	return redisrate.From(extensiontest.NewLimiter(t, core.Options{}))
}

func TestLimits(t *testing.T) {
	for text, limit := range map[string]redisrate.Limit{
		"3 req/s (burst 3)":     redisrate.PerSecond(3),
		"4 req/m (burst 4)":     redisrate.PerMinute(4),
		"5 req/h (burst 5)":     redisrate.PerHour(5),
		"1 req/15m0s (burst 2)": {Rate: 1, Burst: 2, Period: 15 * time.Minute},
	} {
		if got := limit.String(); got != text || limit.IsZero() {
			t.Errorf("%q, want %q; IsZero %v", got, text, limit.IsZero())
		}
	}
	if !(redisrate.Limit{}).IsZero() {
		t.Error("the zero Limit is not zero")
	}
}

// A call that cannot be counted as it stands is an error, and allows nothing.
func TestWrongCalls(t *testing.T) {
	made, second := newLimiter(t), redisrate.PerSecond(1)
	for want, call := range map[string]func() (*redisrate.Result, error){
		"Rate and Burst": func() (*redisrate.Result, error) { return made.Allow(t.Context(), "alice", redisrate.Limit{}) },
		"(burst 0)": func() (*redisrate.Result, error) {
			return made.Allow(t.Context(), "alice", redisrate.Limit{Rate: 1, Period: time.Second})
		},
		"Window": func() (*redisrate.Result, error) {
			return made.Allow(t.Context(), "alice", redisrate.Limit{Rate: 1, Burst: 1})
		},
		"negative":          func() (*redisrate.Result, error) { return made.AllowN(t.Context(), "alice", second, -1) },
		"not be negative":   func() (*redisrate.Result, error) { return made.AllowAtMost(t.Context(), "alice", second, -1) },
		"never made: use N": func() (*redisrate.Result, error) { return redisrate.Limiter{}.Allow(t.Context(), "alice", second) },
		"never made": func() (*redisrate.Result, error) {
			return redisrate.From(nil).AllowAtMost(t.Context(), "alice", second, 1)
		},
		"the Limiter was": func() (*redisrate.Result, error) {
			return nil, new(redisrate.Limiter).Reset(context.Background(), "alice")
		},
	} {
		if got, err := call(); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v; want an error with %q", got, err, want)
		}
	}
}
