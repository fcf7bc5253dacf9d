package outgoing_test

import (
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/outgoing"
)

// A rule for calls that go out is among the attached rules, and decides no call that comes in.
func TestCallsThatComeInAreOthers(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	turns := newTurns(t, limiter, outgoing.Rule{InFlight: 3, Limit: core.PerHour(1000).Bucket(1000)})
	call(t, turns, alice, outgoing.Answer{})
	if all := limiter.Stats().Outgoing; len(all) != 1 || all[0].Rule != "api" || all[0].Sent != 1 || all[0].WaitTime != 0 {
		t.Errorf("the counts are %+v", all)
	}
	ops := operate.New(limiter)
	report, err := ops.Explain(background, operate.Call{Method: "GET", Path: "/orders", User: "alice"})
	if err != nil || strings.Contains(report.String(), "api") {
		t.Errorf("%v\n%v", err, report)
	}
	if report, err := ops.Inspect(background, alice); err != nil || !strings.Contains(report.String(), "1 used, 999 left") {
		t.Errorf("%v\n%v", err, report)
	}
	rules, _, err := ops.Rules()
	if err != nil || len(rules) != 1 || rules[0].Rule.Name != "api" || len(rules[0].Rule.Also) != 1 || !rules[0].Outgoing || rules[0].CountsBy != "" {
		t.Errorf("the rules are %+v, %v", rules, err)
	}
}
