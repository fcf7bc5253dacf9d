package core_test

import (
	"errors"
	"net/http"
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

// setups are setups of a service, and what the log says of many equal calls there, once: words of a
// line, or nothing if there is no mistake.
var setups = map[string]struct {
	rule         core.Rule
	view         adapter.View
	says         []string
	ips          core.ClientIP
	unidentified bool // Identify is unset
}{
	"a private peer":      {rule: ofIP, view: forwardedBy("10.9.9.9"), says: []string{"WARN", "Options.ClientIP.TrustedProxies", "peer=10.9.9.9", "header=X-Forwarded-For"}},
	"a link-local peer":   {rule: ofIP, view: forwardedBy("169.254.1.1"), says: []string{"WARN", "peer=169.254.1.1"}},
	"a provider's own":    {rule: ofIP, view: forwardedBy("100.64.0.1"), says: []string{"WARN", "peer=100.64.0.1"}},
	"a key of one's own":  {rule: keyedBy(ownKeyOfIP), view: forwardedBy("10.9.9.9"), says: []string{"WARN", "TrustedProxies", "peer=10.9.9.9"}},
	"beside a trusted":    {rule: ofIP, view: forwardedBy("172.16.0.1"), ips: proxies, says: []string{"WARN", "peer=172.16.0.1"}},
	"Forwarded":           {rule: ofIP, view: newView("GET", "/").From("127.0.0.1").With("Forwarded", "for=1.2.3.4"), says: []string{"WARN", `\"Forwarded\" in Options.ClientIP.Header`}},
	"a public peer":       {rule: ofIP, view: forwardedBy("198.51.100.7"), says: []string{"INFO", "if the peer is your own proxy", "any caller can send"}},
	"a trusted peer":      {rule: ofIP, view: forwardedBy("10.9.9.9"), ips: proxies},
	"no header":           {rule: ofIP, view: newView("GET", "/").From("10.9.9.9")},
	"counted by user":     {rule: change(ofIP, func(r *core.Rule) { r.NeedLogin = true }), view: forwardedBy("10.9.9.9")},
	"counted by route":    {rule: keyedBy(core.ByRoute), view: forwardedBy("10.9.9.9")},
	"another header read": {rule: ofIP, view: newView("GET", "/").From("10.9.9.9").With("X-Real-Ip", "1.2.3.4"), ips: byRealIP, says: []string{"WARN", "header=X-Real-Ip"}},

	"no address":           {rule: unnamed, view: newView("GET", "/").From(""), says: []string{"WARN", `rule="GET /"`, "ip:unknown", `add \"unix\" to`, "RemoteAddr"}},
	"no address, by ByIP":  {rule: keyedBy(core.Join(core.ByRoute, core.ByIP)), view: newView("GET", "/").From(""), says: []string{"WARN", "rule=api"}},
	"a trusted socket":     {rule: ofIP, view: newView("GET", "/").From(""), ips: byUnix, says: []string{"WARN", "let the proxy on the unix socket set X-Forwarded-For"}},
	"no address, by route": {rule: keyedBy(core.ByRoute), view: newView("GET", "/").From("")},

	"by user":       {rule: keyedBy(core.ByUser), view: newView("GET", "/"), unidentified: true, says: []string{"WARN", "asks who calls", "rule=api", "set Options.Identify"}},
	"by its Skip":   {rule: change(ofIP, func(r *core.Rule) { r.Skip = skipsRoot }), view: newView("GET", "/"), unidentified: true, says: []string{"WARN", "asks who calls"}},
	"by IP":         {rule: ofIP, view: newView("GET", "/"), unidentified: true},
	"with Identify": {rule: keyedBy(core.ByUser), view: newView("GET", "/")},

	"a misspelled method": {rule: change(ofIP, func(r *core.Rule) { r.Methods = []string{"GET", "GETT"} }), view: newView("GET", "/"), says: []string{"WARN", "may be misspelled", "methods=GETT"}},

	"no route yet":         {rule: unnamed, view: unroutedView{newView("GET", "")}, says: []string{"WARN", "300 per minute", "give the rule a Name or Paths"}},
	"no route is found":    {rule: unnamed, view: newView("GET", "")},
	"no route yet, named":  {rule: ofIP, view: unroutedView{newView("GET", "")}},
	"no route yet, a path": {rule: onPath("/**"), view: unroutedView{newView("GET", "")}},
	"a route is known":     {rule: unnamed, view: unroutedView{newView("GET", "/x")}},

	"another spelling":     {rule: onPath("/users/:id"), view: at("/users/{id}", "/users/7"), says: []string{"WARN", "other names than in its path pattern", "rule=api", "pattern=/users/:id"}},
	"another name":         {rule: onPath("/users/:id"), view: at("/users/:user", "/users/7"), says: []string{"WARN", "other names"}},
	"the rest of a path":   {rule: onPath("/users/:id/**"), view: at("/users/{id}/orders/{order...}", "/users/7/orders/8"), says: []string{"WARN", "other names"}},
	"the same spelling":    {rule: onPath("/users/:id"), view: at("/users/:id", "/users/7")},
	"a route of its own":   {rule: onPath("/users/:id"), view: at("/users/list", "/users/list")},
	"another path":         {rule: onPath("/users/:id"), view: at("/orders/{id}", "/orders/7")},
	"no route":             {rule: onPath("/users/:id"), view: at("", "/users/7")},
	"one of the parameter": {rule: onPath("/users/7"), view: at("/users/{id}", "/users/8")},
}

var (
	ofIP     = core.Rule{Name: "api", Seconds: 60, MaxCount: 300}
	unnamed  = core.Rule{Seconds: 60, MaxCount: 300}
	byRealIP = core.ClientIP{TrustedProxies: []string{"10.0.0.7"}, Header: "X-Real-IP"}
	byUnix   = core.ClientIP{TrustedProxies: []string{"unix"}}
)

func keyedBy(key core.KeyFunc) core.Rule { return change(ofIP, func(r *core.Rule) { r.Key = key }) }

func onPath(pattern string) core.Rule {
	return change(ofIP, func(r *core.Rule) { r.Paths = []string{pattern} })
}

func ownKeyOfIP(r core.Request) (string, error) { return "client:" + r.ClientIP().String(), nil }

func skipsRoot(r core.Request) bool {
	user, err := r.User()
	return err == nil && user == "root"
}

func forwardedBy(peer string) *fakeView {
	return newView("GET", "/").As("alice").From(peer).With("X-Forwarded-For", "203.0.113.9")
}

// unroutedView is a call in a router that has not chosen a route.
type unroutedView struct{ *fakeView }

func (unroutedView) Routed() bool { return false }

// A mistake in the setup of a service is logged once, and nothing else is. A stranger brings no warning
// about.
func TestWarningsOfSetups(t *testing.T) {
	for name, test := range setups {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			options := core.Options{Logger: log.Logger(), ClientIP: test.ips}
			if !test.unidentified {
				options.Identify = func(r core.Request) (string, error) {
					r.ClientIP() // as a service does for its own log; nothing is counted by it
					return whoSays(r)
				}
			}
			guard := newGuard(t, newLimiter(t, options), test.rule)
			for range 300 {
				clear(test.view.ResponseHeader().(http.Header)) // each call has a reply of its own
				wantStatus(t, guard, test.view, 200)
			}
			if len(test.says) == 0 || test.says[0] == "INFO" {
				warned(t, &log, 0, "level=WARN")
			}
			if len(test.says) > 0 {
				warned(t, &log, 1, append([]string{"level=" + test.says[0]}, test.says[1:]...)...)
			}
		})
	}
}

// A service that is first called without a proxy still detects one that appears later. A header of
// a stranger does not count as that proxy.
func TestWarnsOfAProxyThatComesLater(t *testing.T) {
	var log logtest.Log
	guard := newGuard(t, newLimiter(t, core.Options{Logger: log.Logger()}), core.Rule{Name: "api", Seconds: 60, MaxCount: 100_000})
	wantStatus(t, guard, newView("GET", "/").From("10.9.9.9"), 200)
	for _, want := range []struct{ level, peer string }{{"level=INFO", "198.51.100.7"}, {"level=WARN", "10.9.9.9"}} {
		for calls := 0; log.Count(want.level, "peer="+want.peer) == 0; calls++ { // one call in many looks
			v := newView("GET", "/").From(want.peer).With("X-Forwarded-For", "1.2.3.4")
			if wantStatus(t, guard, v, 200); calls == 50_000 {
				t.Fatalf("%s is not found", want.peer)
			}
		}
	}
	warned(t, &log, 1, "level=WARN", "peer=10.9.9.9")
}

// A rule that no call can match is reported once, wherever it is attached.
func TestWarnsOfARuleThatLimitsNobody(t *testing.T) {
	nobody := change(ofIP, func(r *core.Rule) { r.Paths, r.Except = []string{"/a"}, []string{"/**"} })
	for name, attach := range map[string]func(*core.Limiter) error{
		"Guard":   func(l *core.Limiter) error { return second(l.Guard(nobody, core.Rule{Name: "all", Seconds: 60})) },
		"Check":   func(l *core.Limiter) error { return second(l.Check(nobody)) },
		"RuleSet": func(l *core.Limiter) error { return keep(t, newRuleSet(t, l, nobody).MustGuard("api")) },
		"Replace": func(l *core.Limiter) error {
			set := newRuleSet(t, l, ofIP)
			return errors.Join(keep(t, set.MustGuard("api")), set.Replace("2", nobody))
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
			warned(t, &log, 1, "level=WARN", "limits nobody", "rule=api", "its exceptions cover every path")
		})
	}
}

// A call that passes two middlewares with the same rule is charged twice, and the log warns of that
// once. Rules of one name that count other subjects are no mistake.
func TestWarnsOfARuleAroundAHandlerTwice(t *testing.T) {
	attached := func(t *testing.T, limiter *core.Limiter, rules ...core.Rule) (guards []*core.Guard) {
		for _, rule := range rules {
			guards = append(guards, newGuard(t, limiter, rule))
		}
		return guards
	}
	one := func(rule core.Rule) func(*testing.T, *core.Limiter) []*core.Guard {
		return func(t *testing.T, limiter *core.Limiter) []*core.Guard {
			guard := newGuard(t, limiter, rule)
			return []*core.Guard{guard, guard}
		}
	}
	two := func(outer, inner core.Rule) func(*testing.T, *core.Limiter) []*core.Guard {
		return func(t *testing.T, limiter *core.Limiter) []*core.Guard { return attached(t, limiter, outer, inner) }
	}
	for name, test := range map[string]struct {
		guards func(*testing.T, *core.Limiter) []*core.Guard // the outermost first
		rule   string                                        // that the log names, or ""
	}{
		"one guard":          {one(keyedBy(core.ByUser)), "rule=api"},
		"one without a name": {one(unnamed), `rule="GET /"`},
		"two equal guards":   {two(ofIP, ofIP), "rule=api"},
		"of other subjects":  {two(ofIP, keyedBy(core.ByUser)), ""},
		"of other names":     {two(ofIP, change(ofIP, func(r *core.Rule) { r.Name = "other" })), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			limiter := newLimiter(t, core.Options{Logger: log.Logger(), Identify: whoSays})
			guards := test.guards(t, limiter)
			for range 3 {
				v := newView("GET", "/").As("alice")
				for _, guard := range guards {
					wantStatus(t, guard, v, 200)
				}
			}
			if test.rule == "" {
				warned(t, &log, 0, "level=WARN")
				return
			}
			warned(t, &log, 1, "level=WARN", "is charged twice", test.rule, "attach the rule once")
		})
	}
}

// keep holds a guard until the test ends, as a service holds its guards.
func keep(t *testing.T, guard *core.Guard) error {
	t.Cleanup(func() { runtime.KeepAlive(guard) })
	return nil
}
