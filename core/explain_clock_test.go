package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// These tests of Explain set the clocks that count, which only tests of core can.

// Waits are told by the clock that counts, also if nothing but a block decides.
func TestExplainTellsTheTimeThatCounts(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		rule := core.Rule{
			Name: "n", Limit: core.PerDay(1), Overrides: true,
			Plans: map[string]core.Limit{"free": core.Unlimited}, Plan: planOf("free"),
		}
		attach(t, limiter, rule)
		until := time.UnixMicro(now.Load()).Add(time.Minute).UTC()
		operator{t, limiter, rule.Name, rule.Limit}.block(me, until)
		x, err := operate.New(limiter).ExplainView(newView("GET", "/"))
		if err != nil || x.Reason != core.Blocked || x.RetryAfter != until.Sub(x.Time) || x.RetryAfter > time.Minute || x.RetryAfter < time.Minute-patient {
			t.Errorf("explained at %v as %s for %v, %v; the block ends at %v", x.Time, x.Reason, x.RetryAfter, err, until)
		}
		if y, err := operate.New(limiter).Inspect(background, me); err != nil || y.Time.Sub(x.Time).Abs() > patient {
			t.Errorf("inspected at %v, %v; explained at %v", y.Time, err, x.Time)
		}
	})
}

// A refusal that completes a ban is explained as the ban that the call gets.
func TestExplainOfTheCallThatCompletesABan(t *testing.T) {
	onBothClocks(t, func(t *testing.T, limiter *core.Limiter, now *wallClock) {
		hour := core.PerHour(1).Fixed()
		for name, ban := range map[string]core.Ban{
			"first":  {After: 1, For: 4 * time.Hour},
			"second": {After: 2, For: 4 * time.Hour},
			"short":  {After: 1, For: time.Minute}, // the limit refuses for longer
		} {
			guard := attach(t, limiter, core.Rule{Name: name, Limit: hour, Ban: ban})
			for window := range 9 {
				for range 3 {
					x, err := operate.New(limiter).ExplainView(newView("GET", "/"))
					d := core.Decision{Reason: core.Allowed}
					if refusal := guard.Check(newView("GET", "/")).Refusal; refusal != nil {
						d = refusal.Decision
					}
					if e := ruleOf(t, x, name); err != nil || e.Reason != d.Reason || e.RetryAfter != d.RetryAfter {
						t.Errorf("%s, window %d: explained as %s for %v, %v; the call is %s for %v", name, window, e.Reason, e.RetryAfter, err, d.Reason, d.RetryAfter)
					}
				}
				now.pass(time.Hour)
			}
		}
	})
}
