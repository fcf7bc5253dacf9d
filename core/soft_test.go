package core_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// gentle is a rule in Soft that lets two calls an hour pass unmarked.
var gentle = core.Rule{Name: "soft", Seconds: 3600, MaxCount: 2, Mode: core.Soft}

// wantSoft checks that a call goes on, and that its handler finds the reason, or nothing for "".
func wantSoft(t *testing.T, guard *core.Guard, v adapter.View, reason core.Reason) core.Decision {
	t.Helper()
	answer := wantStatus(t, guard, v, 200)
	if reason == "" {
		if answer.Context != nil {
			d, _ := core.DecisionFrom(answer.Context)
			t.Fatalf("the handler finds %+v, want no decision", d)
		}
		return core.Decision{}
	}
	if answer.Context == nil {
		t.Fatalf("the handler finds no decision, want %s", reason)
	}
	d, _ := core.DecisionFrom(answer.Context)
	if d.Reason != reason || !d.Allowed || d.RetryAfter != 0 {
		t.Fatalf("the handler finds %+v, want %s", d, reason)
	}
	return d
}

func TestSoftTellsTheHandler(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		var heard decisions
		options.OnDecision, options.Identify = heard.note, whoSays
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, gentle)
		for i, reason := range []core.Reason{"", "", core.SoftExceeded, core.SoftExceeded} {
			v := newView("GET", "/").as("alice")
			wantSoft(t, guard, v, reason)
			d := heard.last(t, i+1)
			want := core.Decision{Allowed: true, Reason: core.Allowed, Rule: "soft", Key: me, Limit: core.PerHour(2), Remaining: max(0, 1-i)}
			if reason != "" {
				want.Reason = reason
			}
			if d.Allowed != want.Allowed || d.Reason != want.Reason || d.Rule != want.Rule || d.Key != want.Key || d.Limit != want.Limit || d.Remaining != want.Remaining || d.RetryAfter != 0 || d.All != nil {
				t.Errorf("call %d: %+v, want %+v", i, d, want)
			}
			if got := parseEntries(t, v.response["Ratelimit"], "r", "t"); len(got) != 1 || got[0].name != "soft" || got[0].a != int64(want.Remaining) || v.response.Get("Retry-After") != "" {
				t.Errorf("call %d: the headers are %v", i, v.response)
			}
		}
		wantLeft(t, limiter, "soft", me, core.PerHour(2), 0) // handles of the name have the same counter
	})
}

// The user is in the context of a call only if Expose is set.
func TestSoftExposesOnlyTheDecision(t *testing.T) {
	for _, expose := range []bool{false, true} {
		guard := newGuard(t, newLimiter(t, core.Options{Identify: whoSays, Expose: expose}), core.Rule{Name: "soft", Seconds: 60, MaxCount: 1, Mode: core.Soft, Key: core.ByUser})
		wantStatus(t, guard, by("alice"), 200)
		answer := wantStatus(t, guard, by("alice"), 200)
		if d, _ := core.DecisionFrom(answer.Context); d.Reason != core.SoftExceeded || d.Key != "user:alice" {
			t.Errorf("the handler finds %+v", d)
		}
		if user, ok := core.UserFrom(answer.Context); ok != expose || expose && user != "alice" {
			t.Errorf("Expose %t: the handler finds the user %q", expose, user)
		}
	}
}

// A soft rule does not keep another rule from being charged. A call that another rule refuses gets
// the Reason of that rule.
func TestSoftBesideOtherRules(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		global := gentle
		global.Key, global.MaxCount = key("all"), 2 // elsewhere on a ring and a cluster
		guard := newGuard(t, limiter, global, core.Rule{Name: "hard", Seconds: 3600, MaxCount: 4})
		for i, reason := range []core.Reason{core.Allowed, core.Allowed, core.SoftExceeded, core.SoftExceeded, core.LimitExceeded, core.LimitExceeded} {
			v := newView("GET", "/")
			answer := guard.Check(v)
			d := heard.last(t, i+1)
			if d.Reason != reason || d.Allowed != (answer.Refusal == nil) || len(d.All) != 2 {
				t.Fatalf("call %d: %+v, want %s", i, d, reason)
			}
			if rule := map[bool]string{true: "soft", false: "hard"}[reason == core.SoftExceeded]; d.Rule != rule {
				t.Errorf("call %d: the rule is %s, want %s", i, d.Rule, rule)
			}
			if names := titlesOf(t, v.response); !slices.Equal(names, []string{"hard"}) {
				t.Errorf("call %d: the headers show %v", i, names)
			}
			if answer.Refusal != nil && !slices.Equal(answer.Refusal.Violated, []string{"hard"}) {
				t.Errorf("call %d: violated are %v", i, answer.Refusal.Violated)
			}
			wantLeft(t, limiter, "hard", me, core.PerHour(4), max(0, 3-i))
		}
		reset, err := limiter.MustCounter("soft", core.PerHour(2)).Reset(background, "all")
		if err != nil || !reset {
			t.Fatal(err)
		}
		wantStatus(t, guard, newView("GET", "/"), 429)
		wantLeft(t, limiter, "soft", "all", core.PerHour(2), 2)
	})
}

func titlesOf(t *testing.T, headers http.Header) (names []string) {
	t.Helper()
	for _, e := range parseEntries(t, headers["Ratelimit-Policy"], "q", "w") {
		names = append(names, e.name)
	}
	return names
}

// A charge that was not made cannot be given back, neither by hand nor by the outcome.
func TestSoftRefunds(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		soft := gentle
		soft.Also = []core.Limit{core.PerDay(9)}
		soft.Count = is(401)
		guard := newGuard(t, limiter, soft, core.Rule{Name: "hard", Seconds: 3600})
		wantServed(t, guard, newView("GET", "/"), 401, 401, 401)
		wantServed(t, guard, newView("GET", "/"), 200, 200)
		wantLeft(t, limiter, "soft", me, core.PerDay(9), 7)
		wantLeft(t, limiter, "hard", me, core.PerHour(5), 2)
		d := wantSoft(t, guard, newView("GET", "/"), core.SoftExceeded)
		refund(t, limiter, d, 1)
		wantLeft(t, limiter, "hard", me, core.PerHour(5), 2)
		wantLeft(t, limiter, "soft", me, core.PerHour(2), 0)
		wantLeft(t, limiter, "soft", me, core.PerDay(9), 7)
	})
}

// A soft rule whose subject cannot be determined does not count the call, and logs that.
func TestSoftWithErrorsRefusesNobody(t *testing.T) {
	failing, login := gentle, gentle
	failing.Key = func(core.Request) (string, error) { return "", errVerify }
	login.NeedLogin = true
	for name, rule := range map[string]core.Rule{"key": failing, "login": login} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: func(core.Request) (string, error) { return "", errVerify }})
			guard := newGuard(t, limiter, rule, core.Rule{Name: "hard", Seconds: 3600, MaxCount: 2})
			for range 2 {
				wantSoft(t, guard, newView("GET", "/"), "")
			}
			wantStatus(t, guard, newView("GET", "/"), 429)
			wantSoft(t, newGuard(t, limiter, rule), newView("GET", "/"), "")
			if log.Count("soft", errVerify.Error()) == 0 {
				t.Errorf("nothing is logged: %s", log.String())
			}
		})
	}
}

// Callers who are not logged in are neither asked to nor counted.
func TestSoftOfALogin(t *testing.T) {
	limiter := newLimiter(t, core.Options{Identify: whoSays})
	rule := gentle
	rule.NeedLogin = true
	guard := newGuard(t, limiter, rule)
	for i := range 4 {
		wantSoft(t, guard, newView("GET", "/"), "")
		reason := core.SoftExceeded
		if i < 2 {
			reason = ""
		}
		wantSoft(t, guard, by("alice"), reason)
	}
	if status := newGuard(t, limiter, rule, core.Rule{Name: "login", Seconds: 60, NeedLogin: true}).Check(newView("GET", "/")).Refusal.Status; status != 401 {
		t.Errorf("a rule beside the soft one asks for a login with %d", status)
	}
}

// A cost that never fits is marked, and charged to none of the rule's limits.
func TestSoftOfACostThatNeverFits(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		for name, overrides := range map[string]bool{"plain": false, "overridable": true} {
			limiter := newLimiter(t, options)
			rule := core.Rule{
				Name: name, Seconds: 3600, MaxCount: 10, Also: []core.Limit{core.PerDay(2)}, Mode: core.Soft, Overrides: overrides,
				Cost: func(r core.Request) int { return int(r.Size()) },
			}
			guard := newGuard(t, limiter, rule, core.Rule{Name: name + " hard", Seconds: 3600})
			v := newView("GET", "/")
			v.size = 3
			if d := wantSoft(t, guard, v, core.SoftExceeded); d.Rule != name || d.Key != me || d.Source != source {
				t.Errorf("%+v", d)
			}
			wantLeft(t, limiter, name, me, core.PerHour(10), 10)
			wantLeft(t, limiter, name, me, core.PerDay(2), 2)
			wantLeft(t, limiter, name+" hard", me, core.PerHour(5), 4)
			v.size = 2
			wantSoft(t, guard, v, "")
			wantLeft(t, limiter, name, me, core.PerHour(10), 8)
		}
	})
}

// An operator's override holds for a soft rule too. A subject that is blocked is marked.
func TestSoftOverrides(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		rule := gentle
		rule.Overrides, rule.Also = true, []core.Limit{core.PerDay(99)}
		guard := newGuard(t, limiter, rule, core.Rule{Name: "hard", Seconds: 3600, MaxCount: 100})
		o := operator{t, limiter, "soft", core.PerHour(2)}
		o.block(me, time.Time{})
		if d := wantSoft(t, guard, newView("GET", "/"), core.SoftExceeded); d.Rule != "soft" || d.ResetAfter != 0 {
			t.Errorf("%+v", d)
		}
		wantLeft(t, limiter, "hard", me, core.PerHour(100), 99)
		o.max(me, 3)
		for _, reason := range []core.Reason{"", "", "", core.SoftExceeded} {
			wantSoft(t, guard, newView("GET", "/"), reason)
		}
		o.lift(me)
		wantSoft(t, guard, newView("GET", "/"), "")
		wantLeft(t, limiter, "soft", me, core.PerDay(99), 96)
		wantLeft(t, limiter, "hard", me, core.PerHour(100), 94)
	})
}

// If the store does not answer, a soft rule lets the call pass uncounted, or counts here.
func TestSoftWithoutAStore(t *testing.T) {
	locally := gentle
	locally.Name, locally.OnStoreError = "local", core.CountLocally(1)
	locally.Also = []core.Limit{core.PerDay(9)}
	limiter := newLimiter(t, deadRedis(t))
	guard := newGuard(t, limiter, gentle, locally)
	for i := range 4 {
		answer := wantStatus(t, guard, newView("GET", "/"), 200)
		if (answer.Context != nil) != (i >= 2) {
			t.Errorf("call %d: the context is %v", i, answer.Context)
		}
	}
	closed := core.Rule{Name: "closed", Seconds: 60, OnStoreError: core.FailClosed}
	wantStatus(t, newGuard(t, limiter, locally, closed), newView("GET", "/"), 503)
}

// A soft rule that has the name which an unnamed rule takes from its route has the counter of that
// rule. Only that rule counts then, and refuses.
func TestSoftNamedLikeARoute(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		soft, hard := core.Rule{Name: "GET /", Seconds: 3600, MaxCount: 1, Mode: core.Soft, Overrides: true}, core.Rule{Seconds: 3600, MaxCount: 3}
		soft.Also = []core.Limit{core.PerDay(1)}
		other := core.Rule{Name: "other", Seconds: 3600, MaxCount: 99, Overrides: true, Key: key("x")}
		for i, rules := range [][]core.Rule{{soft, hard, other}, {hard, soft, other}} {
			limiter := newLimiter(t, options)
			guard := newGuard(t, limiter, rules...)
			v := newView("GET", "/").from([]string{"192.0.2.7", "192.0.2.8"}[i])
			wantServed(t, guard, v, ok, 200, 200, 200, 429)
			wantLeft(t, limiter, "GET /", "ip:"+v.peer.String(), core.PerHour(3), 0)
			wantLeft(t, limiter, "GET /", "ip:"+v.peer.String(), core.PerDay(1), 0)
		}
	})
}

// The override of such a soft rule holds neither for the unnamed rule nor for one behind it.
func TestSoftOverrideNamedLikeARoute(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	soft := core.Rule{Name: "GET /", Seconds: 3600, MaxCount: 1, Mode: core.Soft, Overrides: true}
	guard := newGuard(t, limiter, soft, core.Rule{Seconds: 3600, MaxCount: 2}, core.Rule{Name: "other", Seconds: 3600})
	operator{t, limiter, "GET /", core.PerHour(1)}.lift(me)
	wantServed(t, guard, newView("GET", "/"), ok, 200, 200, 429)
	wantLeft(t, limiter, "other", me, core.PerHour(5), 3)
}

// A lenient limit that is used up does not spare callers the login that another rule needs.
func TestLenientRulesBesideALogin(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Identify = whoSays
		limiter := newLimiter(t, options)
		for _, lenient := range []core.Rule{gentle, tried} {
			exhausting := newGuard(t, limiter, lenient)
			wantServed(t, exhausting, newView("GET", "/"), ok, 200, 200, 200)
			guard := newGuard(t, limiter, lenient, core.Rule{Name: "login", Seconds: 3600, NeedLogin: true})
			wantServed(t, guard, newView("GET", "/"), ok, 401)
			wantServed(t, guard, newView("GET", "/").as("alice"), ok, 200)
		}
	})
}

// The headers with room for one limit keep what an outer middleware wrote, unless that is a soft
// limit too and this one is not.
func TestSoftInOlderHeaders(t *testing.T) {
	limiter := newLimiter(t, core.Options{Headers: core.HeadersDraft7 | core.HeadersXRateLimitDelta})
	outer, inner := newGuard(t, limiter, core.Rule{Name: "hard", Limit: core.PerHour(9).Fixed()}), newGuard(t, limiter, core.Rule{Name: "soft", Limit: core.PerHour(1).Fixed(), Mode: core.Soft})
	for i := range int64(3) {
		v := newView("GET", "/")
		wantStatus(t, outer, v, 200)
		wantStatus(t, inner, v, 200)
		if got := v.response.Get("X-RateLimit-Limit"); got != "9" || v.response.Get("Ratelimit-Policy") != "9;w=3600" {
			t.Errorf("call %d: the headers are %v", i, v.response)
		}
	}
	v := newView("GET", "/")
	wantStatus(t, inner, v, 200)
	if got := v.response.Get("X-RateLimit-Limit"); got != "1" || v.response.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("alone: the headers are %v", v.response)
	}
}

// A caller's own limits include the soft ones.
func TestSoftInOwnLimits(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := newGuard(t, limiter, gentle, core.Rule{Name: "hard", Seconds: 3600})
	for range 3 {
		wantStatus(t, guard, newView("GET", "/"), 200)
	}
	own := guard.OwnLimits(newView("GET", "/"))
	if len(own.Limits) != 2 || own.Limits[0].Rule != "soft" || own.Limits[0].Reason != core.SoftExceeded || own.Limits[0].Remaining != 0 || own.Limits[1].Remaining != 2 {
		t.Errorf("%+v", own)
	}
}

func TestSoftRulesRefused(t *testing.T) {
	for name, rule := range map[string]core.Rule{
		"without a name":  {Seconds: 1, Mode: core.Soft},
		"with a ban":      {Name: "n", Seconds: 1, Mode: core.Soft, Ban: core.Ban{ByHand: true}},
		"with a lease":    {Name: "n", Seconds: 1, Mode: core.Soft, Lease: 1},
		"with FailClosed": {Name: "n", Seconds: 1, Mode: core.Soft, OnStoreError: core.FailClosed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newLimiter(t, core.Options{}).Guard(rule)
			wantRuleError(t, err, rule.Name, "Mode", "soft")
		})
	}
}

// A name is one of soft rules, or of others.
func TestSoftNamesAreTheirOwn(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	newGuard(t, limiter, gentle, gentle)
	hard := gentle
	hard.Mode = core.Enforce
	_, err := limiter.Guard(hard)
	wantRuleError(t, err, "soft", "Name", "soft")
	_, err = newLimiter(t, core.Options{}).Guard(hard, gentle)
	wantRuleError(t, err, "soft", "Name", "soft")

	mine := core.Rule{Name: "mine", Seconds: 60}
	set, err := limiter.RuleSet(mine)
	if err != nil {
		t.Fatal(err)
	}
	guard := set.MustGuard("mine")
	mine.Mode = core.Soft
	if err := set.Replace("2", mine); err != nil {
		t.Error(err)
	}
	newGuard(t, limiter, mine)
	mine.Mode = core.Enforce
	var wrong *core.RuleError
	if err := set.Replace("3", mine); !errors.As(err, &wrong) || wrong.Field != "Name" {
		t.Errorf("%v, want an error about the name", err)
	}
	wantStatus(t, guard, newView("GET", "/"), 200)
}

// A handler finds that a soft limit of an outer middleware is exceeded, whatever inner ones decide,
// and may refund what both charged.
func TestSoftOutsideOfOtherMiddleware(t *testing.T) {
	for _, expose := range []bool{false, true} {
		limiter := newLimiter(t, core.Options{Expose: expose})
		soft := core.Rule{Name: "soft", Seconds: 3600, MaxCount: 1, Mode: core.Soft}
		outer := newGuard(t, limiter, soft, core.Rule{Name: "outer", Seconds: 3600})
		inner := newGuard(t, limiter, core.Rule{Name: "inner", Seconds: 3600})
		wantStatus(t, outer, newView("GET", "/"), 200)
		v := newView("GET", "/")
		v.ctx = wantStatus(t, outer, v, 200).Context
		if answer := wantStatus(t, inner, v, 200); answer.Context != nil {
			v.ctx = answer.Context
		}
		d, _ := core.DecisionFrom(v.ctx)
		if d.Reason != core.SoftExceeded || d.Rule != "soft" || expose && len(d.All) != 3 {
			t.Errorf("Expose %t: the handler finds %+v", expose, d)
		}
		refund(t, limiter, d, 1)
		wantLeft(t, limiter, "soft", me, core.PerHour(1), 0)
		wantLeft(t, limiter, "outer", me, core.PerHour(5), 4)
		if expose {
			wantLeft(t, limiter, "inner", me, core.PerHour(5), 5)
		}
	}
}
