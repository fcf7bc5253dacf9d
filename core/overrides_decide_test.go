package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
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

// The next call of any process obeys an override, also if the one before was refused.
func TestOverridesHoldForTheNextCall(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, byUser("api"))
		guards := []*core.Guard{guard, guard}
		if options.Redis != nil { // another process
			guards[1] = newGuard(t, newLimiter(t, options), byUser("api"))
		}
		wantEach := func(when string, want int) {
			t.Helper()
			for i, g := range guards {
				if got := serve(g, by("a"), ok); got != want {
					t.Fatalf("%s, process %d: status %d, want %d", when, i, got, want)
				}
			}
		}
		o := operator{t, limiter, "api", core.PerHour(2)}
		wantEach("the rule's own", 200)
		wantEach("used up", 429)
		o.max("user:a", 4)
		wantEach("raised", 200)
		wantEach("used up again", 429)
		o.lift("user:a")
		wantEach("lifted", 200)
		o.block("user:a", time.Time{})
		wantEach("blocked", 429)
		o.max("user:a", 6)
		wantEach("raised further, after a lift that counted nothing", 200)
		o.max("user:a", 3)
		wantEach("lowered", 429)
		o.remove("user:a")
		wantEach("removed", 429)
		wantServed(t, guards[0], by("b"), ok, 200, 200, 429)
	})
}

// A blocked subject is refused, nothing is charged, and no ban counts it.
func TestBlocked(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		var heard decisions
		options.Identify, options.OnDecision = whoSays, heard.note
		options.Headers = core.HeadersDraft10 | core.HeadersXRateLimitDelta
		limiter := newLimiter(t, options)
		rule := byUser("api")
		rule.Ban, rule.Also = core.Ban{After: 1, For: time.Hour}, []core.Limit{core.PerDay(10)}
		guard := newGuard(t, limiter, core.Rule{Name: "all", Limit: core.PerHour(50), Key: core.Global}, rule)
		o := operator{t, limiter, "api", core.PerHour(2)}

		o.block("user:a", time.Time{})
		v := by("a")
		refusal := wantStatus(t, guard, v, 429).Refusal
		d := heard.last(t, 1)
		if d.Reason != core.Blocked || d.Rule != "api" || d.RetryAfter != 0 || refusal.RetryAfter != 0 || refusal.Code != 8 {
			t.Errorf("without an end: %+v, %+v", d, refusal)
		}
		if refusal.Message != "Calls are refused." || len(refusal.Violated) > 0 || v.response.Get("Retry-After") != "" {
			t.Errorf("the caller is told %q, %v", refusal.Message, refusal.Violated)
		}
		if text := strings.Join(v.response["Ratelimit"], ", "); !strings.Contains(text, `"api";r=0`) || strings.Contains(text, `"api";r=0;t=`) {
			t.Errorf("RateLimit: %s", text)
		}
		if v.response.Get("X-RateLimit-Reset") != "" && options.Redis == nil {
			t.Errorf("X-RateLimit-Reset: %s", v.response.Get("X-RateLimit-Reset"))
		}

		o.block("user:a", time.Now().Add(time.Hour))
		refusal = wantStatus(t, guard, by("a"), 429).Refusal
		const spread = time.Second // between the clocks of the store and the test
		if d := heard.last(t, 2); d.RetryAfter <= 59*time.Minute || d.RetryAfter > time.Hour+spread || refusal.RetryAfter != d.RetryAfter {
			t.Errorf("for an hour: %+v", d)
		}
		if !strings.HasPrefix(refusal.Message, "Calls are refused for another ") {
			t.Errorf("the caller is told %q", refusal.Message)
		}
		o.block("user:a", time.Now().Add(-time.Second)) // it is over
		wantServed(t, guard, by("a"), ok, 200, 200)
		wantLeft(t, limiter, "api", "user:a", core.PerDay(10), 8)
		eventually(t, "the other shard has its permits back", func() bool {
			d, err := peek(limiter, background, "all", "all", core.PerHour(50))
			return err == nil && d.Remaining == 48
		})
	})
}

// Blocked comes before unlimited, that before an override's Max, that before the plan, and
// that before the rule. A ban holds beside an unlimited one.
func TestOrderOfOverridesAndPlans(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		rule := byUser("api")
		rule.Plans = map[string]core.Limit{"pro": core.PerHour(3), "staff": core.Unlimited}
		rule.Plan = func(r core.Request) (string, error) {
			user, _ := r.User()
			plan, _, _ := strings.Cut(user, "-")
			return strings.TrimPrefix(plan, "none"), nil
		}
		rule.Also, rule.Ban = []core.Limit{core.PerDay(4)}, core.Ban{ByHand: true}
		guard := newGuard(t, limiter, rule)
		o := operator{t, limiter, "api", core.PerHour(2)}

		wantServed(t, guard, by("pro-1"), ok, 200, 200, 200, 429)
		o.max("user:pro-2", 1)
		wantServed(t, guard, by("pro-2"), ok, 200, 429)
		o.lift("user:pro-3")
		wantServed(t, guard, by("pro-3"), ok, 200, 200, 200, 200, 200, 200)
		wantServed(t, guard, by("staff-1"), ok, 200, 200, 200, 200, 200, 200)
		if v := by("staff-1"); serve(guard, v, ok) != 200 || len(v.response) > 0 {
			t.Errorf("a caller without a limit sees %v", v.response)
		}
		o.max("user:staff-2", 3)
		wantServed(t, guard, by("staff-2"), ok, 200, 200, 200, 429)
		o.max("user:staff-3", 9) // Also holds too
		wantServed(t, guard, by("staff-3"), ok, 200, 200, 200, 200, 429)
		o.block("user:staff-4", time.Time{})
		wantServed(t, guard, by("staff-4"), ok, 429)
		o.lift("user:none")
		ban(t, limiter, "api", "user:none", time.Hour)
		if answer := wantStatus(t, guard, by("none"), 429); answer.Refusal.Decision.Reason != core.Banned {
			t.Errorf("%+v", answer.Refusal.Decision)
		}
	})
}

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

// A value written by hand in place of an override counts as absent, and is reported.
func TestOverridesWrittenByHand(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var log logtest.Log
		options.Identify, options.Logger = whoSays, log.Logger()
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, byUser("api"))
		o := operator{t, limiter, "api", core.PerHour(2)}
		sound := core.StoredOverride(core.PerHour(2), 9, 0, false, false, time.Time{})
		other := core.StoredOverride(core.PerDay(2), 9, 0, false, false, time.Time{})
		wrong := map[string]string{"other": other}
		if source == core.FromRedis {
			wrong["random"], wrong["short"], wrong["long"], wrong["kind"] = "hello", sound[:20], sound+"x", "\x09"+sound[1:]
		}
		for user, text := range wrong {
			o.put("user:"+user, text)
			wantServed(t, guard, by(user), ok, 200, 200, 429)
		}
		if source == core.FromRedis {
			client := options.Redis.(*redis.Client)
			client.RPush(background, "accesslimit:{user:list}:api:ov1", "x")
			wantServed(t, guard, by("list"), ok, 200, 200, 429)
			if kind := client.Type(background, "accesslimit:{user:list}:api:ov1").Val(); kind != "list" {
				t.Errorf("the foreign key is a %s", kind)
			}
		}
		limiter.Close()
		if log.Count("an override is ignored", "rule=api", "why=") == 0 {
			t.Errorf("nothing was logged: %s", log.String())
		}
	})
}

// While Redis does not answer, nobody knows of overrides, and the store policy decides.
func TestOverridesWithoutRedis(t *testing.T) {
	for policy, want := range map[core.StorePolicy][]int{
		core.FailOpen: {200, 200, 200}, core.FailClosed: {503, 503, 503}, core.CountLocally(1): {200, 200, 429},
	} {
		options := deadRedis(t)
		options.Identify = whoSays
		rule := byUser("api")
		rule.OnStoreError = policy
		rule.Plans, rule.Plan = map[string]core.Limit{"staff": core.Unlimited}, func(r core.Request) (string, error) {
			user, _ := r.User()
			return strings.TrimPrefix(user, "a"), nil
		}
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, rule)
		wantServed(t, guard, by("a"), ok, want...)
		if policy == core.CountLocally(1) {
			wantServed(t, guard, by("staff"), ok, 200, 200, 200, 200)
		}
		replies := limiter.MustCounter("reply", core.PerHour(2)).WithOverrides()
		if d, err := replies.Allow(background, "s"); !errors.Is(err, core.ErrStore) || d.Allowed {
			t.Errorf("a handle without a policy: %+v, %v", d, err)
		}
		d, err := replies.With(core.Unlimited).WithStorePolicy(policy).Allow(background, "s")
		if err != nil || d.Allowed != (want[0] == 200) {
			t.Errorf("%v: %+v, %v", policy, d, err)
		}
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
