package core_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// asking returns the request of a trusted proxy about a call from 203.0.113.7.
func asking(method, uri string) *fakeView {
	return newView("GET", "/auth").From("10.0.0.1").With("X-Forwarded-For", "203.0.113.7").
		With("X-Forwarded-Method", method).With("X-Forwarded-Uri", uri).With("X-Forwarded-Host", "service.test").With("Host", "auth.test")
}

// forwardAuth returns a function that returns the status for the request of a proxy.
func forwardAuth(t testing.TB, check *core.Check) (ask func(adapter.View) int) {
	t.Helper()
	decide, err := check.ForwardAuth()
	if err != nil {
		t.Fatal(err)
	}
	return func(v adapter.View) int { return status(decide(v)) }
}

// A request that a peer without trust makes, or that does not say which call it is about, gets 403
// and charges nothing. The log says so, and not each time.
func TestForwardAuthIsRefused(t *testing.T) {
	without := func(name string) *fakeView {
		v := asking("GET", "/a")
		v.Request.Del(name)
		return v
	}
	for name, test := range map[string]struct {
		view *fakeView
		log  []string
	}{
		"a stranger":          {asking("GET", "/a").From("198.51.100.1"), []string{"level=WARN", "a peer that is not trusted asked", "peer=198.51.100.1", "TrustedProxies"}},
		"an untrusted socket": {asking("GET", "/a").From(""), []string{"level=WARN", "a peer that is not trusted asked", `peer="a unix socket"`}},
		"no method":           {without("X-Forwarded-Method"), []string{"level=WARN", "X-Forwarded-Method is missing", "peer=10.0.0.1"}},
		"no target":           {without("X-Forwarded-Uri"), []string{"level=WARN", "X-Forwarded-Uri is missing"}},
		"two targets":         {asking("GET", "/a").With("X-Forwarded-Uri", "/b"), []string{"level=WARN", "X-Forwarded-Uri is there more than once"}},
		"no target of a call": {asking("GET", "nonsense"), []string{"level=WARN", "X-Forwarded-Uri is not the target"}},
		"an empty method":     {asking("", "/a"), []string{"level=WARN", "X-Forwarded-Method is not a method"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			var heard decisions
			limiter := newLimiter(t, core.Options{ClientIP: proxies, Logger: log.Logger(), OnDecision: heard.note})
			ask := forwardAuth(t, limiter.MustCheck(core.Rule{Name: "all", Seconds: 600, MaxCount: 1, Key: core.Global}))
			for range 3 {
				if got := ask(test.view); got != http.StatusForbidden {
					t.Errorf("%d, want 403", got)
				}
			}
			warned(t, &log, 1, test.log...)
			if got := ask(asking("GET", "/a")); got != 200 {
				t.Errorf("%d: a permit is missing", got)
			}
			heard.last(t, 1)
		})
	}
}

// Rules that need the end or the body of a call are refused when they are made.
func TestForwardAuthOfWrongRules(t *testing.T) {
	billed := estimating("upload", core.PerHour(9), 2)
	byHeader := core.Rule{Name: "upload", Limit: core.PerHour(9), Cost: func(core.Request) int { return 1 }}
	trusting := newLimiter(t, core.Options{ClientIP: proxies})
	wrong := func(check *core.Check) error {
		_, err := check.ForwardAuth()
		return err
	}
	const why = "needs a handler that settles the call"
	wantRuleError(t, wrong(trusting.MustCheck(billed)), "upload", "Estimate", "a function")
	wantRuleError(t, wrong(newLimiter(t, core.Options{}).MustCheck(byHeader)), "", "Options.ClientIP.TrustedProxies", "[]")
	for _, rule := range []core.Rule{
		{Name: "n", Seconds: 1, Count: func(int) bool { return true }}, {Name: "n", Limit: core.InFlight(1)},
	} {
		if _, err := trusting.Check(rule); err == nil || !strings.Contains(err.Error(), "needs a middleware, which knows") {
			t.Errorf("%+v: %v", rule, err)
		}
	}

	set := newRuleSet(t, trusting, byHeader)
	ask := forwardAuth(t, set.MustCheck("upload"))
	inHandler := newRuleSet(t, newLimiter(t, core.Options{ClientIP: proxies}), byHeader)
	check := inHandler.MustCheck("upload")
	if err := set.Replace("2", billed); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("Replace: %v", err)
	}
	if got := ask(asking("GET", "/")); got != 200 {
		t.Errorf("%d by the rules in force", got)
	}
	for range 2 {
		if err := inHandler.Replace("2", billed); err != nil {
			t.Errorf("Replace for a handler: %v", err)
		}
		wantRuleError(t, wrong(check), "upload", "Estimate", "a function")
	}
}

// A refusal is never permission, even if Reply gives it a status of success.
func TestForwardAuthRefusesInSpiteOfReply(t *testing.T) {
	for reply, want := range map[int]int{200: 429, 204: 429, 299: 429, 302: 302, 403: 403} {
		limiter := newLimiter(t, core.Options{ClientIP: proxies, Reply: func(_ core.Request, r core.Refusal) core.Refusal {
			r.Status = reply
			return r
		}})
		ask := forwardAuth(t, limiter.MustCheck(core.Rule{Name: "n", Seconds: 600, MaxCount: 1}))
		if first, second := ask(asking("GET", "/")), ask(asking("GET", "/")); first != 200 || second != want {
			t.Errorf("Reply with %d: %d, %d, want 200 and %d", reply, first, second, want)
		}
	}
}
