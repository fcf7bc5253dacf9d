package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Counters obey the overrides of their name.
func TestOverridesOfCounters(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		replies := limiter.MustCounter("reply", core.PerHour(2), core.PerDay(50)).WithOverrides()
		allow := func(c core.Counter, n int) core.Decision {
			t.Helper()
			d, err := c.AllowN(background, "s", n)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		o := operator{t, limiter, "reply", core.PerHour(2)}
		if _, err := replies.AllowN(background, "s", 3); !errors.Is(err, core.ErrCostExceedsLimit) {
			t.Errorf("more than Max: %v", err)
		}
		o.max("s", 5)
		if d := allow(replies, 3); !d.Allowed || d.Limit != core.PerHour(5) || d.Remaining != 2 || len(d.All) != 2 {
			t.Errorf("%+v", d)
		} else if err := limiter.Refund(background, d, 2); err != nil {
			t.Error(err)
		}
		if _, err := replies.AllowN(background, "s", 6); !errors.Is(err, core.ErrCostExceedsLimit) || !strings.Contains(err.Error(), "6 of 5/h") {
			t.Errorf("more than the override: %v", err)
		}
		if n, d, err := replies.AllowUpTo(background, "s", 100); n != 4 || err != nil || d.Remaining != 0 {
			t.Errorf("up to: %d, %+v, %v", n, d, err)
		}
		if d := allow(replies.With(core.Unlimited), 1); d.Allowed || d.Limit != core.PerHour(5) {
			t.Errorf("an override limits who is Unlimited: %+v", d)
		}
		if _, err := replies.With(core.PerDay(3)).Allow(background, "s"); err == nil {
			t.Error("no error for a limit of another span")
		}
		o.lift("s")
		if d := allow(replies, 100); !d.Allowed || d.Limit != core.Unlimited || d.Reason != core.Allowed {
			t.Errorf("lifted: %+v", d)
		}
		if n, _, err := replies.AllowUpTo(background, "s", 100); n != 100 || err != nil {
			t.Errorf("lifted, up to: %d, %v", n, err)
		}
		o.block("s", time.Time{})
		if d := allow(replies, 1); d.Allowed || d.Reason != core.Blocked || d.RetryAfter != 0 || d.All != nil {
			t.Errorf("blocked: %+v", d)
		}
		if n, d, err := replies.AllowUpTo(background, "s", 5); n != 0 || err != nil || d.Reason != core.Blocked {
			t.Errorf("blocked, up to: %d, %+v, %v", n, d, err)
		}
		o.remove("s")
		wantLeft(t, limiter, "reply", "s", core.PerDay(50), 45)
		if d := allow(replies.With(core.Unlimited), 100); !d.Allowed || d.Limit != core.Unlimited {
			t.Errorf("unlimited: %+v", d)
		}
	})
}

// An int of a process on 32 bits cannot hold all numbers that others store. It then shows the
// largest int, and still counts by the number that is stored.
func TestOverridesAboveAnInt(t *testing.T) {
	const stored = int64(1_000_000_000_000)
	most := int(min(stored, math.MaxInt))
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		for _, own := range []core.Limit{core.PerHour(2), core.PerHour(2).Bucket(2)} {
			var seen decisions
			options.Identify, options.OnDecision = whoSays, seen.note
			limiter := newLimiter(t, options)
			rule := byUser("api of " + own.Algorithm.String())
			rule.Limit = own
			guard := newGuard(t, limiter, rule)
			operator{t, limiter, rule.Name, own}.put("user:a", core.StoredOverride(own, stored, stored, false, false, time.Time{}))
			wantServed(t, guard, by("a"), ok, 200, 200, 200)
			if d := seen.last(t, 3); d.Limit.Max != most || d.Remaining < int(min(stored-3, math.MaxInt)) {
				t.Errorf("%+v, want a Max of %d", d, most)
			}
			overrides, err := operate.New(limiter).Overrides(rule.Name)
			if err != nil {
				t.Fatal(err)
			}
			if o, ok, err := overrides.Get(background, "user:a"); err != nil || !ok || o.Max != most || o.Ignored != "" {
				t.Errorf("%+v, %v, %v, want a Max of %d", o, ok, err, most)
			}
		}
	})
}

// Other handles do, too. Overrides need a limit, and one span for each name.
func TestOverridesOfOtherHandles(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter, bucket, entries := newLimiter(t, options), core.PerHour(1).Bucket(1), core.PerHour(1).Log()
		pacer, log := limiter.MustPacer("pacer", bucket).WithOverrides(), limiter.MustLog("log", entries).WithOverrides()
		slots := limiter.MustSlots("slots", 1).WithOverrides()
		for name, handle := range map[string]struct {
			own  core.Limit
			call func() (core.Decision, error)
		}{
			"pacer": {bucket, func() (core.Decision, error) { return pacer.TryAcquire(background, "s", 1, 0) }},
			"log":   {entries, func() (core.Decision, error) { return log.Allow(background, "s", "note") }},
			"slots": {core.InFlight(1), func() (d core.Decision, err error) { _, d, err = slots.Hold(background, "s"); return d, err }},
		} {
			want := func(when string, each ...bool) {
				for i, allowed := range each {
					if d, err := handle.call(); err != nil || d.Allowed != allowed {
						t.Errorf("%s, %s, call %d: %+v, %v", name, when, i, d, err)
					}
				}
			}
			o := operator{t, limiter, name, handle.own}
			want("own", true, false)
			o.max("s", 2)
			want("raised", true, false)
			o.lift("s")
			want("lifted", true)
			o.block("s", time.Time{})
			want("blocked", false)
		}
		limiter.MustCounter("reply", core.PerHour(2)).WithOverrides()
		for name, limit := range map[string]core.Limit{"free": core.Unlimited, "reply": core.PerDay(2)} {
			_, err := limiter.MustCounter(name, limit).WithOverrides().Allow(background, "s")
			wantRuleError(t, err, name, "Limit", limit.String())
		}
	})
}
