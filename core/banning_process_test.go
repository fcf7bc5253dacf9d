package core_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// banningProcess is a process whose rules obey bans and overrides. There is one for each StorePolicy,
// and one that refuses nobody for each way to do so.
type banningProcess struct {
	limiter   *core.Limiter
	guards    map[string]*core.Guard // by the names of their rules
	decisions *decisions
}

// call returns the status and the decision of a call. Of a rule in DryRun, that is what it would
// have decided.
func (p *banningProcess) call(rule, subject string) (int, core.Decision) {
	p.decisions.heard = nil
	got := status(p.guards[rule].Check(of(subject)))
	if len(p.decisions.heard) == 0 {
		return got, core.Decision{}
	}
	return got, p.decisions.heard[0]
}

// imposeAll makes a process ban one subject, and block one for a time and one for ever, from all rules.
func (p *banningProcess) imposeAll(t *testing.T) {
	t.Helper()
	for rule := range banningPolicies {
		if rule != "dry" && rule != "soft" {
			ban(t, p.limiter, rule, "banned", time.Hour)
		}
		setOverride(t, p.limiter, rule, "blocked", operate.Override{Blocked: true, Until: time.Now().Add(time.Hour)})
		setOverride(t, p.limiter, rule, "outcast", operate.Override{Blocked: true})
	}
}

// wantRefused checks that each rule which refuses anybody refuses these subjects, with the wait, and
// that no other rule does.
func (p *banningProcess) wantRefused(t *testing.T, who string) {
	t.Helper()
	for rule := range banningPolicies {
		for subject, reason := range imposed {
			got, d := p.call(rule, subject)
			if rule == "dry" || rule == "soft" {
				if got != http.StatusOK {
					t.Errorf("%s: %s by %s: %d, %+v; that rule refuses nobody", who, subject, rule, got, d)
				}
				continue
			}
			wantsWait := subject != "outcast"
			if got != http.StatusTooManyRequests || d.Reason != reason || wantsWait != (d.RetryAfter > 59*time.Minute && d.RetryAfter <= time.Hour+time.Second) {
				t.Errorf("%s: %s by %s: %d, %v, %v", who, subject, rule, got, d.Reason, d.RetryAfter)
			}
		}
	}
}

// wantPolicies checks that others get what the policies of the rules say.
func (p *banningProcess) wantPolicies(t *testing.T, subject string) {
	t.Helper()
	for rule, want := range map[string]int{"open": 200, "closed": 503, "local": 200} {
		if got, d := p.call(rule, subject); got != want || d.Reason == core.Banned || d.Reason == core.Blocked {
			t.Errorf("%s by %s: %d, %+v, want %d", subject, rule, got, d, want)
		}
	}
}

var banningPolicies = map[string]core.StorePolicy{
	"open": core.FailOpen, "closed": core.FailClosed, "local": core.CountLocally(1), "dry": core.FailOpen, "soft": core.FailOpen,
}

func banningRule(name string) core.Rule {
	return core.Rule{
		Name: name, Limit: core.PerHour(50), Also: []core.Limit{core.PerDay(100)}, Key: ofSubject,
		Ban: core.Ban{ByHand: name != "soft"}, Overrides: true, OnStoreError: banningPolicies[name],
		Mode: map[string]core.Mode{"dry": core.DryRun, "soft": core.Soft}[name],
	}
}

func ofSubject(r core.Request) (string, error) { return r.Header("Subject")[0], nil }

func of(subject string) *fakeView { return newView("GET", "/").with("Subject", subject) }

func newBanningProcess(t *testing.T, o *outage) *banningProcess {
	t.Helper()
	p := &banningProcess{guards: make(map[string]*core.Guard), decisions: new(decisions)}
	p.limiter = newLimiter(t, core.Options{Redis: o.connect(t), Timeout: patient, OnDecision: p.decisions.note})
	for name := range banningPolicies {
		p.guards[name] = newGuard(t, p.limiter, banningRule(name))
	}
	return p
}

var imposed = map[string]core.Reason{"banned": core.Banned, "blocked": core.Blocked, "outcast": core.Blocked}
