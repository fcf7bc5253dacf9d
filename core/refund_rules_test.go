package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

var day = core.PerDay(10)

// Each limit of a rule gets the permit back, whether the decision, or one of its parts, is given
// back.
func TestRefundOfSeveralLimits(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 4, Also: []core.Limit{day}, Cost: cost(2)})
		left := func(hour, days int) {
			t.Helper()
			wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(4), hour)
			wantLeft(t, limiter, "n", "ip:192.0.2.1", day, days)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		d := heard.last(t, 1)
		left(2, 8)
		refund(t, limiter, d, 1)
		left(3, 9)
		refund(t, limiter, d.All[1], 1)
		left(3, 10)
		wantNoRefund(t, limiter, d.All[1], 1, "1")
		wantNoRefund(t, limiter, d, 1, "1") // of one limit nothing is left, so of neither is given back
		left(3, 10)
		refund(t, limiter, d.All[0], 1)
		left(4, 10)
	})
}

// A refused call charged nothing, the limit of it that had permits left neither.
func TestRefundOfARefusedCall(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision, options.Identify = heard.note, whoSays
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Also: []core.Limit{day}})
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantStatus(t, guard, newView("GET", "/"), 429)
		d := heard.last(t, 2)
		for _, d := range append(d.All, d) {
			wantNoRefund(t, limiter, d, 1, "1")
		}
		wantLeft(t, limiter, "n", "ip:192.0.2.1", day, 9)
	})
}

func TestRefundInsideAHandler(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Expose = true
		limiter := newLimiter(t, options)
		guard := newGuard(t, limiter, core.Rule{Limit: core.PerHour(2).Fixed()})
		answer := wantStatus(t, guard, newView("GET", "/users/:id"), 200)
		d, _ := core.DecisionFrom(answer.Context)
		fixed := core.Limit{Max: 2, Window: time.Hour, Algorithm: core.FixedWindow}
		wantLeft(t, limiter, "GET /users/:id", "ip:192.0.2.1", fixed, 1)
		refund(t, limiter, d, 1)
		wantLeft(t, limiter, "GET /users/:id", "ip:192.0.2.1", fixed, 2)
		wantNoRefund(t, limiter, d, 1, "1")
	})
}

// A charge of a rule in DryRun is given back to its own counter, never to that of the live rule of
// the same name.
func TestRefundOfADryRun(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		live := core.Rule{Name: "n", Seconds: 3600, MaxCount: 2}
		dry := live
		dry.DryRun = true
		both := newGuard(t, limiter, live, dry)
		wantStatus(t, both, newView("GET", "/"), 200)
		heard.last(t, 2)
		tried := heard.heard[0]
		refund(t, limiter, tried, 1)
		wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(2), 1)
		wantNoRefund(t, limiter, tried, 1, "1")

		onlyTried := newGuard(t, limiter, dry)
		wantStatus(t, onlyTried, newView("GET", "/"), 200)
		if d := heard.last(t, 4); d.Source != core.FromNobody {
			t.Errorf("the answer to a call that is only tried: %+v", d)
		}
		if tried := heard.heard[2]; tried.Remaining != 1 {
			t.Errorf("the tried counter has %d left, want 1 of 2: its first call was given back", tried.Remaining)
		}
	})
}
