package core_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// tried is a rule in DryRun that allows one call an hour.
var tried = core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Mode: core.DryRun}

// Beside a live rule, only that one is shown, decides and charges. Each rule in DryRun is reported
// by itself, and counts how many of its calls the live rule refused.
func TestDryRunBesideALiveRule(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, source core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter, other := newLimiter(t, options), tried
		other.Name, other.MaxCount = "other", 9
		guard := newGuard(t, limiter, tried, core.Rule{Name: "live", Seconds: 3600, MaxCount: 2}, other)
		for call, want := range [][]core.Reason{
			{core.Allowed, core.Allowed, core.Allowed}, {core.Allowed, core.DryRunExceeded, core.Allowed}, {core.LimitExceeded, core.DryRunExceeded, core.Allowed},
		} {
			v := newView("GET", "/")
			refusal := guard.Check(v).Refusal
			if got := parseEntries(t, v.Response["Ratelimit-Policy"], "q", "w"); !equal(got, []entry{{"live", 2, 3600}}) {
				t.Errorf("the headers show %v", got)
			}
			if (refusal != nil) != (call == 2) || refusal != nil && (!slices.Equal(refusal.Violated, []string{"live"}) || refusal.Decision.Rule != "live") {
				t.Errorf("call %d: %+v", call, refusal)
			}
			awaitDryRuns(t, limiter)
			heard.last(t, 3*call+3)
			for i, name := range []string{"live", "n", "other"} {
				at := slices.IndexFunc(heard.heard[3*call:], func(d core.Decision) bool { return d.Rule == name })
				d := heard.heard[3*call+at]
				if d.Reason != want[i] || d.All != nil || d.Allowed != (d.RetryAfter == 0) {
					t.Errorf("call %d: received %+v, want %s of %s", call, d, want[i], name)
				}
				if call == 2 && name == "other" && d.Remaining != 7 {
					t.Errorf("a refused call was charged to a tried rule, which has %d left, want 7", d.Remaining)
				}
			}
		}
		refused := make(map[core.DecisionCount]uint64)
		for _, d := range limiter.Stats().Decisions {
			if d.Refused > 0 {
				refused[counted(d.Rule, d.Reason, "")] += d.Refused
			}
		}
		if want := map[core.DecisionCount]uint64{counted("n", core.DryRunExceeded, ""): 1, counted("other", core.Allowed, ""): 1}; !maps.Equal(refused, want) {
			t.Errorf("refused by the live rule: %v, want %v", refused, want)
		}
	})
}

// A rule in DryRun asks nobody to log in, and does not identify callers. A handler finds the user that
// it asked for.
func TestDryRunOfALogin(t *testing.T) {
	for name, test := range map[string]struct {
		user    string
		counted int
	}{"nobody": {"", 0}, "somebody": {"alice", 1}} {
		t.Run(name, func(t *testing.T) {
			var heard decisions
			limiter := newLimiter(t, core.Options{
				OnDecision: heard.note, Expose: true, Identify: func(core.Request) (string, error) { return test.user, nil },
			})
			rule := tried
			rule.NeedLogin = true
			guard := newGuard(t, limiter, rule, core.Rule{Name: "live", Seconds: 60})
			wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
			heard.last(t, 2+2*test.counted)
			alone := newGuard(t, limiter, rule).Check(newView("GET", "/"))
			if user, _ := core.UserFrom(alone.Context); user != test.user {
				t.Errorf("the handler finds %q", user)
			}
			for i := range test.counted {
				if d := heard.heard[2*i+1]; d.Rule != "n" || d.Key != "user:alice" {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// The text form of a mode reads as the same mode. A text that is none is a *RuleError, and changes
// nothing.
func TestModeText(t *testing.T) {
	for mode, text := range map[core.Mode]string{core.Enforce: `"enforce"`, core.Soft: `"soft"`, core.DryRun: `"dry_run"`} {
		if written, err := json.Marshal(mode); err != nil || string(written) != text {
			t.Errorf("%v is written %s (%v), want %s", mode, written, err, text)
		}
		read := core.Mode(77)
		if err := json.Unmarshal([]byte(text), &read); err != nil || read != mode {
			t.Errorf("%s is read as %v (%v), want %v", text, read, err, mode)
		}
	}
	read := core.Soft
	for _, text := range []string{"", "dry run", "DryRun", "Mode(7)"} {
		wantRuleError(t, read.UnmarshalText([]byte(text)), "", "Mode", text)
	}
	if read != core.Soft || core.Mode(7).String() != "Mode(7)" {
		t.Errorf("the mode has become %v, and an unknown one is %v", read, core.Mode(7))
	}
}

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

// Nothing that makes a rule refuse a call makes a rule in Soft or DryRun refuse it. A soft rule whose subject
// cannot be determined does not count the call, and logs that.
func TestLenientRulesWithErrorsRefuseNobody(t *testing.T) {
	for _, lenient := range []core.Rule{gentle, tried} {
		for what, change := range map[string]func(*core.Rule){
			"a key":   func(r *core.Rule) { r.Key = func(core.Request) (string, error) { return "", errVerify } },
			"a login": func(r *core.Rule) { r.NeedLogin = true },
			"a cost":  func(r *core.Rule) { r.Cost = cost(3) },
		} {
			t.Run(what+" of "+lenient.Name, func(t *testing.T) {
				var log logtest.Log
				rule, reason := lenient, core.Reason("")
				change(&rule)
				if rule.Mode == core.Soft && rule.Cost != nil {
					reason = core.SoftExceeded
				}
				limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: func(core.Request) (string, error) { return "", errVerify }})
				wantSoft(t, newGuard(t, limiter, rule), newView("GET", "/"), reason)
				guard := newGuard(t, limiter, rule, core.Rule{Name: "hard", Seconds: 3600, MaxCount: 2})
				for range 2 {
					wantSoft(t, guard, newView("GET", "/"), reason)
				}
				wantStatus(t, guard, newView("GET", "/"), 429)
				if uncounted := rule.Mode == core.Soft && rule.Cost == nil; uncounted != (log.Count("soft", errVerify.Error()) > 0) {
					t.Errorf("the log is %s", log.String())
				}
			})
		}
	}
}

// A rule in DryRun refuses nobody while the store is away, whatever its policy.
func TestDryRunWithoutAStore(t *testing.T) {
	closed := tried
	closed.OnStoreError = core.FailClosed
	var heard decisions
	options := deadRedis(t)
	options.OnDecision = heard.note
	limiter := newLimiter(t, options)
	wantServed(t, newGuard(t, limiter, closed), newView("GET", "/"), ok, 200)
	awaitDryRuns(t, limiter)
	if d := heard.last(t, 1); d.Reason != core.StoreFailOpen || !d.Allowed {
		t.Errorf("%+v", d)
	}
}

// A soft rule that has the name which an unnamed rule takes from its route has the counter of that
// rule. Only that rule counts then, and refuses.
func TestSoftNamedLikeARoute(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		soft, hard := core.Rule{Name: "GET /", Seconds: 3600, MaxCount: 1, Mode: core.Soft}, core.Rule{Seconds: 3600, MaxCount: 3}
		soft.Also = []core.Limit{core.PerDay(1)}
		other := core.Rule{Name: "other", Seconds: 3600, MaxCount: 99, Key: key("x")}
		for i, rules := range [][]core.Rule{{soft, hard, other}, {hard, soft, other}} {
			limiter := newLimiter(t, options)
			guard := newGuard(t, limiter, rules...)
			v := newView("GET", "/").From([]string{"192.0.2.7", "192.0.2.8"}[i])
			wantServed(t, guard, v, ok, 200, 200, 200, 429)
			wantLeft(t, limiter, "GET /", "ip:"+v.Peer.String(), core.PerHour(3), 0)
			wantLeft(t, limiter, "GET /", "ip:"+v.Peer.String(), core.PerDay(1), 0)
		}
	})
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
			wantServed(t, guard, newView("GET", "/").As("alice"), ok, 200)
		}
	})
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
	set := newRuleSet(t, limiter, mine)
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
		v.Ctx = wantStatus(t, outer, v, 200).Context
		if answer := wantStatus(t, inner, v, 200); answer.Context != nil {
			v.Ctx = answer.Context
		}
		d, _ := core.DecisionFrom(v.Ctx)
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
