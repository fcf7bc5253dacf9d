package operate_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Strikes and bans are those that the next refusal continues.
func TestInspectShowsStrikes(t *testing.T) { synctest.Test(t, inspectStrikes) }

func inspectStrikes(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := attach(t, limiter, core.Rule{Name: "api", Limit: core.PerMinute(1).Aligned(), Ban: core.Ban{After: 3, For: time.Minute, Max: time.Hour}})
	for i, want := range []struct{ bans, strikes int }{{0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		for range 3 {
			guard.Check(newView("GET", "/"))
		}
		r := ruleOf(t, inspect(t, limiter, "ip:192.0.2.1"), "api")
		if banned := i == 2; r.Bans != want.bans || r.Strikes != want.strikes || (r.Reason == core.Banned) != banned || r.BannedUntil.IsZero() == banned {
			t.Errorf("minute %d: %+v", i, r)
		}
		time.Sleep(time.Minute)
	}
	time.Sleep(time.Minute)
	if r := ruleOf(t, inspect(t, limiter, "ip:192.0.2.1"), "api"); r.Bans != 1 || r.Strikes != 0 {
		t.Errorf("strikes in a row are over: %+v", r)
	}
	time.Sleep(2 * time.Hour)
	if r := ruleOf(t, inspect(t, limiter, "ip:192.0.2.1"), "api"); r.Bans != 0 || r.Strikes != 0 {
		t.Errorf("the bans are forgotten: %+v", r)
	}
}

// A report says once of a ban that it holds, in the verdict if the ban is what refuses.
func TestABanIsReportedOnce(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		attach(t, limiter, core.Rule{Name: "login", Limit: core.PerHour(5)})
		ban(t, limiter, "login", "ip:192.0.2.7", time.Hour)
		call := operate.Call{Method: "GET", Path: "/", RemoteAddr: "192.0.2.7"}
		wantOnce := func(report, text string) {
			t.Helper()
			if body := report[strings.Index(report, "\n\n"):]; strings.Count(body, "banned") != 1 || !strings.Contains(body, text) {
				t.Errorf("the report does not say once %q:\n%s", text, report)
			}
		}
		until := ruleOf(t, inspect(t, limiter, "ip:192.0.2.7"), "login").BannedUntil.Format(time.RFC3339)
		wantOnce(inspect(t, limiter, "ip:192.0.2.7").String(), ", until "+until+"\n")
		wantOnce(explain(t, limiter, call).String(), ", until "+until+"  <- refuses the call\n")
		setOverride(t, limiter, "login", "ip:192.0.2.7", operate.Override{Blocked: true})
		wantOnce(inspect(t, limiter, "ip:192.0.2.7").String(), ", until "+until+"\n")
	})
}
