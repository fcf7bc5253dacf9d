package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// operator sets overrides of one rule, whose own limit is given.
type operator struct {
	testing.TB
	limiter *core.Limiter
	name    string
	own     core.Limit
}

func (o operator) put(subject, text string) {
	o.Helper()
	if err := core.PutOverride(o.limiter, o.name, subject, text); err != nil {
		o.Fatal(err)
	}
}

func (o operator) max(subject string, most int) {
	o.put(subject, core.StoredOverride(o.own, most, 0, false, false, time.Time{}))
}

func (o operator) lift(subject string) {
	o.put(subject, core.StoredOverride(o.own, 0, 0, true, false, time.Time{}))
}

func (o operator) block(subject string, until time.Time) {
	o.put(subject, core.StoredOverride(o.own, 0, 0, false, true, until))
}

func (o operator) remove(subject string) { o.put(subject, "") }

// A call that costs nothing is refused while Redis does not answer, if the rule says so: its subject
// may be blocked.
func TestFailClosedOfACallThatCostsNothing(t *testing.T) {
	options := deadRedis(t)
	options.Identify = whoSays
	limiter := newLimiter(t, options)
	rule := byUser("api")
	rule.Cost, rule.OnStoreError = cost(0), core.FailClosed
	if answer := newGuard(t, limiter, rule).Check(by("a")); answer.Refusal == nil || answer.Refusal.Decision.Reason != core.StoreFailClosed {
		t.Errorf("%+v", answer)
	}
}

// A plan that LimitFor computes must have the rule's span and algorithm, or the rule's own limit
// holds.
func TestComputedPlansOfARuleWithOverrides(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Identify: whoSays, Logger: log.Logger()})
	limits := map[string]core.Limit{"more": core.PerHour(3), "other": core.PerDay(9)}
	rule := byUser("api")
	rule.LimitFor = func(r core.Request) (core.Limit, error) {
		user, err := r.User()
		return limits[user], err
	}
	guard := newGuard(t, limiter, rule)
	wantServed(t, guard, by("more"), ok, 200, 200, 200, 429)
	wantServed(t, guard, by("other"), ok, 200, 200, 429)
	if log.Count("plan could not be found", "rule=api") == 0 {
		t.Error("nothing was logged")
	}
}

// A caller who is blocked is told so, for how long if the block ends, and of no limit.
func TestBlocked(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	guard, o := newGuard(t, limiter, byUser("api")), operator{t, limiter, "api", core.PerHour(2)}
	for until, message := range map[time.Time]string{{}: "Calls are refused.", time.Now().Add(time.Hour): "Calls are refused for another "} {
		o.block("user:a", until)
		refusal := wantStatus(t, guard, by("a"), 429).Refusal
		if d := refusal.Decision; d.Reason != core.Blocked || (d.RetryAfter > 0) == until.IsZero() || refusal.RetryAfter != d.RetryAfter || refusal.Code != 8 {
			t.Errorf("until %v: %+v", until, refusal)
		}
		if !strings.HasPrefix(refusal.Message, message) || len(refusal.Violated) > 0 {
			t.Errorf("the caller is told %q, %v", refusal.Message, refusal.Violated)
		}
	}
	o.block("user:a", time.Now().Add(-time.Second)) // it is over
	wantServed(t, guard, by("a"), ok, 200, 200, 429)
}

// An override that was made for another window counts as absent, and is reported.
func TestOverridesOfAnotherWindow(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Identify: whoSays, Logger: log.Logger()})
	guard := newGuard(t, limiter, byUser("api"))
	operator{t, limiter, "api", core.PerDay(2)}.max("user:a", 9)
	wantServed(t, guard, by("a"), ok, 200, 200, 429)
	if log.Count("an override is ignored", "rule=api", "why=") != 1 {
		t.Errorf("the log is %s", log.String())
	}
}

// Counters obey the overrides of their name.
func TestOverridesOfCounters(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		replies := limiter.MustCounter("reply", core.PerHour(2), core.PerDay(50)).WithOverrides()
		o := operator{t, limiter, "reply", core.PerHour(2)}
		o.max("s", 5)
		if d, err := replies.AllowN(background, "s", 3); err != nil || d.Limit != core.PerHour(5) || d.Remaining != 2 || len(d.All) != 2 {
			t.Errorf("%+v", d)
		} else if err := limiter.Refund(background, d, 2); err != nil {
			t.Error(err)
		}
		if _, err := replies.AllowN(background, "s", 6); !errors.Is(err, core.ErrCostExceedsLimit) || !strings.Contains(err.Error(), "6 of 5/h") {
			t.Errorf("more than the override: %v", err)
		}
		for _, test := range []struct {
			override func()
			n        int
			reason   core.Reason
			limit    core.Limit
		}{
			{func() {}, 4, core.Allowed, core.PerHour(5)},
			{func() { o.lift("s") }, 100, core.Allowed, core.Unlimited},
			{func() { o.block("s", time.Time{}) }, 0, core.Blocked, core.PerHour(2)},
		} {
			test.override()
			granted, d, err := replies.AllowUpTo(background, "s", 100)
			if granted != test.n || err != nil || d.Reason != test.reason || d.Limit != test.limit || d.Allowed != (granted > 0) || d.RetryAfter > 0 {
				t.Errorf("%s: %d, %+v, %v", test.reason, granted, d, err)
			}
		}
		if d, err := replies.With(core.Unlimited).Allow(background, "s"); err != nil || d.Reason != core.Blocked {
			t.Errorf("a block of who is Unlimited: %+v, %v", d, err)
		}
		o.remove("s")
		wantLeft(t, limiter, "reply", "s", core.PerDay(50), 45)
		if _, err := replies.With(core.PerDay(3)).Allow(background, "s"); !isWrong(err) {
			t.Errorf("a limit of another span: %v", err)
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
