package core_test

import (
	"encoding/json"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// tried is a rule in DryRun that allows one call an hour.
var tried = core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Mode: core.DryRun}

// Beside a live rule, only that one is shown, decides and charges. Each rule in DryRun is reported
// by itself.
func TestDryRunBesideALiveRule(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		other := tried
		other.Name, other.MaxCount = "other", 9
		guard := newGuard(t, limiter, tried, core.Rule{Name: "live", Seconds: 3600, MaxCount: 2}, other)
		wantReasons := func(call int, want ...core.Reason) {
			t.Helper()
			heard.last(t, 3*call)
			for i, name := range []string{"n", "other", "live"} {
				if d := heard.heard[3*call-3+i]; d.Rule != name || d.Reason != want[i] || d.All != nil || d.Allowed != (d.RetryAfter == 0) {
					t.Errorf("call %d: received %+v, want %s of %s", call, d, want[i], name)
				}
			}
		}
		v := newView("GET", "/")
		wantStatus(t, guard, v, 200)
		wantReasons(1, core.Allowed, core.Allowed, core.Allowed)
		if got := parseEntries(t, v.response["Ratelimit-Policy"], "q", "w"); !equal(got, []entry{{"live", 2, 3600}}) {
			t.Errorf("the headers show %v", got)
		}
		wantStatus(t, guard, newView("GET", "/"), 200)
		wantReasons(2, core.DryRunExceeded, core.Allowed, core.Allowed)
		answer := wantStatus(t, guard, newView("GET", "/"), 429)
		wantReasons(3, core.DryRunExceeded, core.Allowed, core.LimitExceeded)
		if names := answer.Refusal.Violated; len(names) != 1 || names[0] != "live" || answer.Refusal.Decision.Rule != "live" {
			t.Errorf("violated %q of %+v", names, answer.Refusal.Decision)
		}
		if d := heard.heard[7]; d.Remaining != 7 {
			t.Errorf("a refused call was charged to a tried rule, which has %d left, want 7", d.Remaining)
		}
	})
}

// A rule in DryRun asks nobody to log in, and does not identify callers.
func TestDryRunOfALogin(t *testing.T) {
	for name, test := range map[string]struct {
		user    string
		counted int
	}{"nobody": {"", 0}, "somebody": {"alice", 1}} {
		t.Run(name, func(t *testing.T) {
			var heard decisions
			limiter := newLimiter(t, core.Options{
				OnDecision: heard.note, Identify: func(core.Request) (string, error) { return test.user, nil },
			})
			rule := tried
			rule.NeedLogin = true
			guard := newGuard(t, limiter, rule, core.Rule{Name: "live", Seconds: 60})
			wantServed(t, guard, newView("GET", "/"), ok, 200, 200)
			heard.last(t, 2+2*test.counted)
			for i := range test.counted {
				if d := heard.heard[2*i]; d.Rule != "n" || d.Key != "user:alice" {
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
