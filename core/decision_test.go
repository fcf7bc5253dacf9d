package core_test

import (
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Of two limits the one that says more about the call binds, whichever comes first.
func TestWhichLimitBinds(t *testing.T) {
	failed := algorithm.Verdict{Err: errVerify}
	for _, test := range []struct {
		name        string
		policy      core.OnStoreError
		more, less  algorithm.Verdict
		status      int
		reason      core.Reason
		violated    []string // of "more" and "less"
		moreIsNoOne bool     // the store did not answer for it
	}{
		{"a refusal before an allowance", core.FailOpen, algorithm.Verdict{RetryAfter: 1}, algorithm.Verdict{Remaining: 0, ResetAfter: 9}, 429, core.LimitExceeded, []string{"more"}, false},
		{"a longer wait before a shorter", core.FailOpen, algorithm.Verdict{RetryAfter: 2}, algorithm.Verdict{RetryAfter: 1, ResetAfter: 9}, 429, core.LimitExceeded, []string{"more", "less"}, false},
		{"fewer left before more", core.FailOpen, algorithm.Verdict{Remaining: 1}, algorithm.Verdict{Remaining: 2, ResetAfter: 9}, 200, core.Allowed, nil, false},
		{"a later reset before an earlier", core.FailOpen, algorithm.Verdict{Remaining: 1, ResetAfter: 2}, algorithm.Verdict{Remaining: 1, ResetAfter: 1}, 200, core.Allowed, nil, false},
		{"counted before not counted", core.FailOpen, algorithm.Verdict{Remaining: 3}, failed, 200, core.Allowed, nil, false},
		{"over the limit before not counted", core.FailOpen, algorithm.Verdict{RetryAfter: 1}, failed, 429, core.LimitExceeded, []string{"more"}, false},
		{"over the limit before a closed store", core.FailClosed, algorithm.Verdict{RetryAfter: 1}, failed, 429, core.LimitExceeded, []string{"more"}, false},
		{"a closed store before an allowance", core.FailClosed, failed, algorithm.Verdict{Remaining: 3}, 503, core.StoreFailClosed, nil, true},
		{"an open store before nothing", core.FailOpen, failed, failed, 200, core.StoreFailOpen, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, names := range [][]string{{"more", "less"}, {"less", "more"}} {
				if test.more == test.less && names[0] == "less" {
					continue
				}
				var heard decisions
				limiter := newLimiter(t, core.Options{OnDecision: heard.note})
				verdicts := map[string]algorithm.Verdict{"more": test.more, "less": test.less}
				var rules []core.Rule
				for _, name := range names {
					rules = append(rules, core.Rule{Name: name, Seconds: 60, OnStoreError: test.policy})
				}
				core.UseAnswers(limiter, verdicts[names[0]], verdicts[names[1]])
				answer := wantStatus(t, newGuard(t, limiter, rules...), newView("GET", "/"), test.status)
				d := heard.last(t, 1)
				if d.Rule != "more" || d.Reason != test.reason || d.Allowed != (test.status == 200) || (d.Source == core.FromNobody) != test.moreIsNoOne {
					t.Errorf("%v: %+v", names, d)
				}
				if len(d.All) != 2 || d.All[0].Rule != "more" || d.All[1].Rule != "less" {
					t.Errorf("%v: All is %+v", names, d.All)
				}
				if answer.Refusal != nil {
					slices.Sort(answer.Refusal.Violated)
					slices.Sort(test.violated)
					if !slices.Equal(answer.Refusal.Violated, test.violated) {
						t.Errorf("%v: violated %q", names, answer.Refusal.Violated)
					}
				}
			}
		})
	}
}

// OnDecision hears of every call that a rule decided about, once, and of no other.
func TestOnDecisionIsCalledOnceACall(t *testing.T) {
	var heard decisions
	limiter := newLimiter(t, core.Options{OnDecision: heard.note, Identify: whoSays, Expose: true})
	both := newGuard(t, limiter, core.Rule{Name: "ip", Seconds: 3600, MaxCount: 2}, core.Rule{Name: "user", Seconds: 3600, NeedLogin: true})
	elsewhere := newGuard(t, limiter, core.Rule{Name: "post", Seconds: 1, Methods: []string{"POST"}})
	for _, test := range []struct {
		guard  *core.Guard
		user   string
		reason core.Reason // "" is none
	}{
		{both, "alice", core.Allowed}, {elsewhere, "alice", ""}, {both, "", core.NotLoggedIn},
		{both, "bob", core.Allowed}, {both, "bob", core.LimitExceeded}, {both, "", core.LimitExceeded},
	} {
		before := len(heard.heard)
		test.guard.Check(newView("GET", "/").as(test.user))
		if test.reason == "" {
			heard.last(t, before)
		} else if d := heard.last(t, before+1); d.Reason != test.reason || d.Allowed != (test.reason == core.Allowed) {
			t.Errorf("%+v, want %s", d, test.reason)
		}
	}
}
