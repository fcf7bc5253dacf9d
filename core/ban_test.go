package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// byHand is a rule that checks bans, but never starts one.
var byHand = core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Ban: core.Ban{ByHand: true}}

func TestWrongBans(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	newGuard(t, limiter, byHand)
	const year = 366 * 24 * time.Hour
	for _, test := range []struct {
		name, counter, subject string
		span                   time.Duration
		rule, field, value     string
	}{
		{"no end", "n", "s", 0, "n", "span", "0s"},
		{"backwards", "n", "s", -time.Hour, "n", "span", "-1h"},
		{"no time", "n", "s", time.Millisecond - 1, "n", "span", "999.999µs"},
		{"for ever", "n", "s", year + 1, "n", "span", "8784h"},
		{"a rule that would not see it", "deaf", "s", time.Hour, "deaf", "Ban", "nobody"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantRuleError(t, errorOf(operate.New(limiter).Ban(background, test.counter, test.subject, test.span)), test.rule, test.field, test.value)
		})
	}
	for _, span := range []time.Duration{time.Millisecond, year} {
		ban(t, limiter, "n", "s", span)
	}
	if _, err := operate.New(limiter).Ban(background, "of another process", "s", time.Hour); err != nil {
		t.Errorf("this limiter has no rules of the name: %v", err)
	}
	heeding := core.Rule{Name: "deaf", Seconds: 60, Ban: core.Ban{ByHand: true}}
	newGuard(t, limiter, heeding)
	newGuard(t, limiter, core.Rule{Name: "deaf", Seconds: 60})
	if _, err := operate.New(limiter).Ban(background, "deaf", "s", time.Hour); err != nil {
		t.Errorf("a rule of the name has Ban set now: %v", err)
	}
}

func TestBanText(t *testing.T) {
	for ban, want := range map[core.Ban]string{
		{}:                         "nobody",
		{ByHand: true}:             "by hand",
		{After: 3, For: time.Hour}: "after 3 windows, for 1h",
		{After: 1, For: 90 * time.Second, Max: 24 * time.Hour}: "after 1 window, for 1m30s, up to 24h",
	} {
		if got := ban.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
