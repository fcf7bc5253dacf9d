package operate_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Identify does not run for a call of somebody who is not logged in, nor for one that names the user.
func TestExplainWithoutIdentify(t *testing.T) {
	identify := func(core.Request) (string, error) {
		t.Error("Identify runs")
		return "mallory", nil
	}
	limiter := newLimiter(t, core.Options{Identify: identify})
	attach(t, limiter, core.Rule{Name: "login", Limit: core.PerHour(5), NeedLogin: true})
	call := operate.Call{Method: "GET", Path: "/", Anonymous: true}
	if x := explain(t, limiter, call); x.Reason != core.NotLoggedIn || x.User != "" {
		t.Errorf("without a user: %v", x)
	}
	call.User = "alice"
	if x := explain(t, limiter, call); x.User != "alice" || ruleOf(t, x, "login").Subject != "user:alice" {
		t.Errorf("of a user: %v", x)
	}
}
