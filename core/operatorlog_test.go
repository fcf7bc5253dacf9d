package core_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// warned checks that a log has so many lines at a level that contain all of the words, and no other
// lines above INFO.
func warned(t *testing.T, log *logtest.Log, lines int, words ...string) {
	t.Helper()
	if n, all := log.Count(words...), log.Count("level=WARN")+log.Count("level=ERROR"); n != lines || strings.Contains(words[0], "WARN") && all != lines {
		t.Errorf("%d lines, %d warnings; want %d with %q in:\n%s", n, all, lines, words, log.String())
	}
}

func TestWarnsOfAProxyThatIsNotTrusted(t *testing.T) {
	byIP := core.Rule{Name: "api", Seconds: 60, MaxCount: 10_000}
	byUser, byRoute, own := byIP, byIP, byIP
	byUser.NeedLogin, byRoute.Key = true, core.ByRoute
	own.Key = func(r core.Request) (string, error) { return "client:" + r.ClientIP().String(), nil }
	forwarded := func(peer string) *fakeView {
		return newView("GET", "/").as("alice").from(peer).with("X-Forwarded-For", "203.0.113.9")
	}
	warning := []string{"level=WARN", "Options.ClientIP.TrustedProxies", "peer=10.9.9.9", "header=X-Forwarded-For"}
	for name, test := range map[string]struct {
		rule  core.Rule
		ips   core.ClientIP
		view  *fakeView
		lines int
		words []string
	}{
		"a private peer":      {byIP, core.ClientIP{}, forwarded("10.9.9.9"), 1, warning},
		"a link-local peer":   {byIP, core.ClientIP{}, forwarded("169.254.1.1"), 1, []string{"level=WARN", "peer=169.254.1.1"}},
		"a provider's own":    {byIP, core.ClientIP{}, forwarded("100.64.0.1"), 1, []string{"level=WARN", "peer=100.64.0.1"}},
		"a key of one's own":  {own, core.ClientIP{}, forwarded("10.9.9.9"), 1, warning},
		"beside a trusted":    {byIP, proxies, forwarded("172.16.0.1"), 1, []string{"level=WARN", "peer=172.16.0.1"}},
		"Forwarded":           {byIP, core.ClientIP{}, newView("GET", "/").from("127.0.0.1").with("Forwarded", "for=1.2.3.4"), 1, []string{"level=WARN", "header=Forwarded", `\"Forwarded\" in Options.ClientIP.Header`}},
		"a public peer":       {byIP, core.ClientIP{}, forwarded("198.51.100.7"), 1, []string{"level=INFO", "if the peer is your own proxy", "any caller can send"}},
		"a trusted peer":      {byIP, proxies, forwarded("10.9.9.9"), 0, []string{"TrustedProxies"}},
		"no header":           {byIP, core.ClientIP{}, newView("GET", "/").from("10.9.9.9"), 0, []string{"TrustedProxies"}},
		"counted by user":     {byUser, core.ClientIP{}, forwarded("10.9.9.9"), 0, []string{"TrustedProxies"}},
		"counted by route":    {byRoute, core.ClientIP{}, forwarded("10.9.9.9"), 0, []string{"TrustedProxies"}},
		"another header read": {byIP, core.ClientIP{TrustedProxies: []string{"10.0.0.7"}, Header: "X-Real-IP"}, newView("GET", "/").from("10.9.9.9").with("X-Real-Ip", "1.2.3.4"), 1, []string{"level=WARN", "header=X-Real-Ip"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			identify := func(r core.Request) (string, error) {
				r.ClientIP() // as a service does for its own log; nothing is counted by it
				return whoSays(r)
			}
			limiter := newLimiter(t, core.Options{Logger: log.Logger(), ClientIP: test.ips, Identify: identify})
			guard := newGuard(t, limiter, test.rule)
			for range 300 {
				wantStatus(t, guard, test.view, 200)
			}
			warned(t, &log, test.lines, test.words...)
			if test.words[0] == "level=INFO" && log.Count("level=WARN") > 0 {
				t.Error("a stranger brought a warning about")
			}
		})
	}
}

// A service that is first called without a proxy still detects one that appears later. A header of
// a stranger does not count as that proxy.
func TestWarnsOfAProxyThatComesLater(t *testing.T) {
	var log logtest.Log
	guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger()}), core.Rule{Name: "api", Seconds: 60, MaxCount: 100_000})
	wantStatus(t, guard, newView("GET", "/").from("10.9.9.9"), 200)
	for _, want := range []struct{ level, peer string }{{"level=INFO", "198.51.100.7"}, {"level=WARN", "10.9.9.9"}} {
		v := newView("GET", "/").from(want.peer).with("X-Forwarded-For", "1.2.3.4")
		for calls := 0; log.Count(want.level, "peer="+want.peer) == 0; calls++ { // one call in many looks
			if wantStatus(t, guard, v, 200); calls == 50_000 {
				t.Fatalf("%s is not found", want.peer)
			}
		}
	}
	warned(t, &log, 1, "level=WARN", "peer=10.9.9.9")
}

func TestWarnsOfCallsWithoutAnAddress(t *testing.T) {
	for name, test := range map[string]struct {
		rule  core.Rule
		ips   core.ClientIP
		peer  string
		lines int
		words []string
	}{
		"by IP":             {core.Rule{Seconds: 60}, core.ClientIP{}, "", 1, []string{"level=WARN", "rule=\"GET /\"", "ip:unknown", `add \"unix\" to Options.ClientIP.TrustedProxies`, "RemoteAddr"}},
		"by ByIP":           {core.Rule{Name: "n", Seconds: 60, Key: core.Join(core.ByRoute, core.ByIP)}, core.ClientIP{}, "", 1, []string{"level=WARN", "rule=n"}},
		"a trusted socket":  {core.Rule{Name: "n", Seconds: 60}, core.ClientIP{TrustedProxies: []string{"unix"}}, "", 1, []string{"level=WARN", "let the proxy on the unix socket set X-Forwarded-For"}},
		"not counted by IP": {core.Rule{Name: "n", Seconds: 60, Key: core.ByRoute}, core.ClientIP{}, "", 0, []string{"level=WARN"}},
		"an address":        {core.Rule{Name: "n", Seconds: 60}, core.ClientIP{}, "192.0.2.1", 0, []string{"level=WARN"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger(), ClientIP: test.ips}), test.rule)
			for range 5 {
				wantStatus(t, guard, newView("GET", "/").from(test.peer), 200)
			}
			warned(t, &log, test.lines, test.words...)
		})
	}
}

func TestWarnsOfARuleByUserWithoutIdentify(t *testing.T) {
	byUser := core.Rule{Name: "mine", Seconds: 60, Key: core.ByUser}
	skip := core.Rule{Name: "skip", Seconds: 60, Skip: func(r core.Request) bool {
		user, err := r.User()
		return err == nil && user == "root"
	}}
	nobody := func(core.Request) (string, error) { return "", nil }
	for name, test := range map[string]struct {
		rule     core.Rule
		identify core.IdentifyFunc
		lines    int
	}{
		"by user":       {byUser, nil, 1},
		"by its Skip":   {skip, nil, 1},
		"by IP":         {core.Rule{Name: "ip", Seconds: 60}, nil, 0},
		"with Identify": {byUser, nobody, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger(), Identify: test.identify}), test.rule)
			for range 5 {
				wantStatus(t, guard, newView("GET", "/"), 200)
			}
			warned(t, &log, test.lines, "level=WARN", "asks who calls", "rule="+test.rule.Name, "set Options.Identify")
		})
	}
}

// A rule that no call can match is reported once, wherever it is attached.
func TestWarnsOfARuleThatLimitsNobody(t *testing.T) {
	nobody := core.Rule{Name: "api", Seconds: 60, Paths: []string{"/a"}, Except: []string{"/**"}}
	somebody := core.Rule{Name: "api", Seconds: 60}
	warning := []string{"level=WARN", "limits nobody", "rule=api", "its exceptions cover every path"}
	for name, attach := range map[string]func(*core.Limiter) error{
		"Guard": func(l *core.Limiter) error {
			_, err := l.Guard(nobody, core.Rule{Name: "all", Seconds: 60})
			return err
		},
		"Check": func(l *core.Limiter) error { _, err := l.Check(nobody); return err },
		"RuleSet": func(l *core.Limiter) error {
			set, err := l.RuleSet(nobody)
			return errors.Join(err, keep(t, set.MustGuard("api")))
		},
		"Replace": func(l *core.Limiter) error {
			set, err := l.RuleSet(somebody)
			return errors.Join(err, keep(t, set.MustGuard("api")), set.Replace("2", nobody))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Logger: log.Logger()})
			for range 2 {
				if err := attach(limiter); err != nil {
					t.Fatal(err)
				}
			}
			warned(t, &log, 1, warning...)
		})
	}
}

// keep holds a guard until the test ends, as a service holds its guards.
func keep(t *testing.T, guard *core.Guard) error {
	t.Cleanup(func() { runtime.KeepAlive(guard) })
	return nil
}

// A method that may be misspelled is reported, and not as a rule that limits nobody: the rule limits
// the calls of its other methods.
func TestWarnsOfUnknownMethods(t *testing.T) {
	var log logtest.Log
	newGuard(t, newLimiter(t, core.Options{Logger: log.Logger()}), core.Rule{Name: "api", Seconds: 60, Methods: []string{"GET", "GETT"}})
	warned(t, &log, 1, "level=WARN", "may be misspelled", "rule=api", "methods=GETT")
	warned(t, &log, 0, "limits nobody")
}

// A rule that misses a route only because its pattern spells the parameters in another way is
// reported once.
func TestWarnsOfParametersInAnotherSpelling(t *testing.T) {
	for _, test := range []struct {
		pattern, route, path string
		lines                int
	}{
		{"/users/:id", "/users/{id}", "/users/7", 1},
		{"/users/:id", "/users/:user", "/users/7", 1},
		{"/users/:id/**", "/users/{id}/orders/{order...}", "/users/7/orders/8", 1},
		{"/users/:id", "/users/:id", "/users/7", 0},
		{"/users/:id", "/users/list", "/users/list", 0}, // a route of its own
		{"/users/:id", "/orders/{id}", "/orders/7", 0},
		{"/users/:id", "", "/users/7", 0},
		{"/users/7", "/users/{id}", "/users/8", 0}, // one value of the parameter
	} {
		var log logtest.Log
		guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger()}), core.Rule{Name: "api", Seconds: 60, MaxCount: 100, Paths: []string{test.pattern}})
		for range 3 {
			wantStatus(t, guard, at(test.route, test.path), 200)
		}
		warned(t, &log, test.lines, "level=WARN", "other names than in its path pattern", "rule=api", "pattern="+test.pattern)
	}
}

// unroutedView is a call in a router that has not chosen a route.
type unroutedView struct{ *fakeView }

func (unroutedView) Routed() bool { return false }

func TestWarnsOfARuleWithoutARoute(t *testing.T) {
	for name, test := range map[string]struct {
		rule  core.Rule
		view  adapter.View
		lines int
	}{
		"unnamed":           {core.Rule{Seconds: 60}, unroutedView{newView("GET", "")}, 1},
		"no route is found": {core.Rule{Seconds: 60}, newView("GET", ""), 0},
		"named":             {core.Rule{Name: "n", Seconds: 60}, unroutedView{newView("GET", "")}, 0},
		"with paths":        {core.Rule{Paths: []string{"/**"}, Seconds: 60}, unroutedView{newView("GET", "")}, 0},
		"a route is known":  {core.Rule{Seconds: 60}, unroutedView{newView("GET", "/x")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger()}), test.rule)
			for range 5 {
				wantStatus(t, guard, test.view, 200)
			}
			warned(t, &log, test.lines, "level=WARN", "5 per minute", "give the rule a Name or Paths")
		})
	}
}

// Callers cannot fill the log. The number of messages that are written once is bounded, too.
func TestWarningsAreBounded(t *testing.T) {
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Logger: log.Logger()})
	for i := range 300 {
		for range 2 {
			checkRule(limiter, unroutedView{newView("GET", "")}, core.Rule{Seconds: i + 1}, "")
		}
	}
	warned(t, &log, 100, "level=WARN", "the route is known")
	if n := log.Count(`limit="5 per 7 seconds"`); n != 1 {
		t.Errorf("%d lines about one limit", n)
	}
}
