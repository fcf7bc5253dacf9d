package limittest_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// TestUseUp uses up a limit of each algorithm, fresh and partly used.
func TestUseUp(t *testing.T) {
	limiter, err := core.New(core.Options{Redis: limittest.StartRedis(t).Client(t), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, limiter.Close)
	hourly := core.PerHour(3)
	for name, limit := range map[string]core.Limit{
		"window": hourly, "log": hourly.Log(), "fixed": hourly.Fixed(), "bucket": hourly.Bucket(7), "day": core.PerDay(3).Aligned(),
	} {
		counter := limiter.MustCounter(name, limit)
		for subject, used := range map[string]int{"user:alice": 0, "user:bob": 2} {
			if _, err := counter.AllowN(t.Context(), subject, used); err != nil {
				t.Fatal(err)
			}
			limittest.UseUp(t, limiter, core.Rule{Name: name, Limit: limit}, subject)
			if d, err := counter.Allow(t.Context(), subject); err != nil || d.Allowed {
				t.Errorf("%v: %+v, %v", limit, d, err)
			}
		}
	}
}

// TestUseUpSlots takes all slots until the test ends.
func TestUseUpSlots(t *testing.T) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, limiter.Close)
	exports := core.Rule{Name: "exports", Limit: core.Limit{Max: 2, Window: time.Minute, Algorithm: core.Concurrency}}
	left := func() int {
		d, err := limiter.MustSlots("exports", 2).LostAfter(time.Minute).Peek(t.Context(), "user:alice")
		if err != nil {
			t.Fatal(err)
		}
		return d.Remaining
	}
	t.Run("until its end", func(t *testing.T) {
		limittest.UseUp(t, limiter, exports, "user:alice")
		if n := left(); n != 0 {
			t.Errorf("%d slots are left", n)
		}
	})
	if n := left(); n != 2 {
		t.Errorf("%d slots are left after the test, want 2", n)
	}
}
