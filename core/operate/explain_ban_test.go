package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// A report says once of a ban that it holds, in the verdict if the ban is what refuses.
func TestABanIsReportedOnce(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		limiter := newLimiter(t, options)
		attach(t, limiter, core.Rule{Name: "login", Limit: core.PerHour(5), Ban: core.Ban{ByHand: true}, Overrides: true})
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
