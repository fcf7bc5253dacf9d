package adaptertest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// contract serves one app and makes one call for each thing that an adapter must do. It names a
// mistake before scenarios fail because of it.
func (a Adapter) contract(t testing.TB) {
	c := &contract{site: &site{adapter: a, network: "tcp", peers: new(from)}, ended: make(chan int, 10)}
	c.peers.show(peerNamed(t, shownPeer))
	limiter := c.limiter(t, func(o *core.Options) { o.Expose, o.Identify = true, nobody })
	c.serve(t, App{
		Limiter: limiter,
		Before: func(ctx context.Context) context.Context {
			return context.WithValue(ctx, inFront{}, "context")
		},
		Values: map[string]string{"adaptertest": "store"},
		Use: limit(
			c.inUse.rule("use", "/shown/*"),
			c.plain.rule("plain", plainPath),
			c.slash.rule("slash", plainPath+"/"),
		),
		Routes: append(c.routes(limiter.MustCheck(once(nil))), ownRoutes(limiter)...),
	})
	if reply := c.get(t, freePath); reply.Status != http.StatusOK || reply.Body != "ok" {
		t.Fatalf("GET %s, to which no rule applies, got status %d and %q, want 200 and %q: "+
			"Adapter.Serve must serve all routes, and the middleware must run the handler when Answer.Refusal is nil",
			freePath, reply.Status, reply.Body, "ok")
	}
	if reply := c.get(t, panicPath); reply.Status != http.StatusInternalServerError {
		t.Fatalf("a panicking handler got status %d, want 500: Adapter.Serve must put a recovery around everything", reply.Status)
	}
	c.wantView(t)
	c.wantRefusal(t)
	c.wantEnding(t)
	c.wantExposed(t)
	if !a.RPC {
		c.wantLoose(t)
	}
	c.wantAllow(t)
	c.wantOwnLimits(t)
}

// nobody identifies no user.
func nobody(core.Request) (string, error) { return "", nil }

// The paths of the contract's app. "/shown/7" is a path of /shown/{id}, or a method of an RPC.
const (
	freePath    = "/contract/free"
	plainPath   = "/contract/plain"
	refusedPath = "/contract/refused"
	endingPath  = "/contract/ending"
	panicPath   = "/recovery/missing" // a failure reads: GET /recovery/missing: no reply
	exposedPath = "/contract/exposed"
	allowPath   = "/contract/allow"
	ownPath     = "/contract/limits"
	loginPath   = "/contract/login"
	textPath    = "/contract/text"

	shownPeer = "192.0.2.7"
)

// contract is one run of Adapter.contract.
type contract struct {
	*site
	shown, inUse, plain, slash views        // what the rules with these names were shown
	ran                        atomic.Int32 // runs of the handler whose limit is one call
	ended                      chan int     // what Count received
}

// inFront is the key of a context value that the outermost middleware sets.
type inFront struct{}

func (c *contract) routes(check *core.Check) []Route {
	shown := Route{Method: http.MethodPost, Path: "/shown/{id}", limits: limit(c.shown.rule("shown"))}
	if c.adapter.RPC {
		shown.Method, shown.Path = "", "/shown/7"
	}
	counted := core.Rule{Name: "counted", Seconds: 600, MaxCount: mostPermits, Count: func(outcome int) bool {
		c.ended <- outcome
		return true
	}}
	slot := core.Rule{Name: "slot", Limit: core.InFlight(1)}
	return []Route{
		shown, {Path: freePath}, {Path: plainPath},
		{Path: refusedPath, limits: limit(once(nil)), Handle: func(h Handling) { c.ran.Add(1); h.Text("ok") }},
		{Path: endingPath, limits: limit(counted), Handle: func(h Handling) { h.Reply(http.StatusNotFound) }},
		{Path: textPath, limits: limit(slot), Handle: func(h Handling) { h.Text("ok") }},
		{Path: panicPath, Handle: func(Handling) { panic("a handler's own fault") }},
		{Path: exposedPath, limits: limit(core.Rule{Name: "exposed", Seconds: 600}), Handle: func(h Handling) {
			d, _ := core.DecisionFrom(h.Context())
			h.Text(d.Rule)
		}},
		{Path: allowPath, Handle: func(h Handling) {
			if h.Allow(check, "account:carol") {
				c.ran.Add(1)
				h.Text("ok")
			}
		}},
	}
}

// wantRefusal makes two calls where the limit allows one.
func (c *contract) wantRefusal(t testing.TB) {
	c.ran.Store(0)
	if reply := c.get(t, refusedPath); reply.Status != http.StatusOK || c.ran.Load() != 1 {
		t.Fatalf("a call within its limit got status %d and ran the handler %d times, want 200 and once: "+
			"a nil Answer.Refusal lets the call go on", reply.Status, c.ran.Load())
	}
	c.refused(t, "the middleware", c.get(t, refusedPath))
}

// refused checks a reply that must be a refusal.
func (c *contract) refused(t testing.TB, by string, reply Reply) {
	if c.ran.Load() != 1 {
		t.Errorf("%s let the handler go on though Answer.Refusal was set", by)
	}
	switch {
	case reply.Status != http.StatusTooManyRequests:
		t.Errorf("%s sent a refusal with status %d, want Refusal.Status, 429", by, reply.Status)
	case reply.Header.Get("Retry-After") == "":
		t.Errorf("%s sent a refusal without the headers of Refusal.SetHeader", by)
	case reply.Body == "":
		t.Errorf("%s sent a refusal without Refusal.Body", by)
	}
}

// wantEnding makes a call that the handler ends with 404, and two calls that need the same slot.
func (c *contract) wantEnding(t testing.TB) {
	reply := c.get(t, endingPath)
	if reply.Status != http.StatusNotFound {
		t.Fatalf("a call whose handler replied 404 got status %d", reply.Status)
	}
	select {
	case outcome := <-c.ended:
		if outcome != reply.Outcome {
			t.Errorf("Count received %d, want the outcome that was sent, %d: "+
				"the function passed to Answer.Run must return it", outcome, reply.Outcome)
		}
	case <-time.After(patience):
		t.Errorf("the middleware did not run the handler in Answer.Run: Count received nothing within %v", patience)
	}
	for range 2 {
		if reply := c.get(t, textPath); reply.Status != http.StatusOK || reply.Body != "ok" {
			t.Errorf("a call with the one slot got status %d and %q, want 200 and %q: "+
				"the previous call's slot is free once Answer.Run has returned", reply.Status, reply.Body, "ok")
		}
	}
}

// wantExposed makes a call whose handler looks for its decision.
func (c *contract) wantExposed(t testing.TB) {
	if reply := c.get(t, exposedPath); reply.Body != "exposed" {
		t.Errorf("the middleware did not pass Answer.Context to the handler, which found the decision of %q", reply.Body)
	}
}

// wantAllow makes calls whose handler calls Allow.
func (c *contract) wantAllow(t testing.TB) {
	c.ran.Store(0)
	if reply := c.get(t, allowPath); reply.Status != http.StatusOK || reply.Body != "ok" {
		t.Fatalf("Allow within the limit: status %d and %q, want the handler's reply", reply.Status, reply.Body)
	}
	c.refused(t, "Allow", c.get(t, allowPath))
}

// ownRoutes are routes that show callers their own limits.
func ownRoutes(limiter *core.Limiter) []Route {
	own := limiter.MustGuard(core.Rule{Name: "own", Seconds: 600, MaxCount: 3})
	login := limiter.MustGuard(core.Rule{Name: "login", Seconds: 600, NeedLogin: true})
	return []Route{
		{Path: ownPath, Handle: func(h Handling) { h.OwnLimits(own) }},
		{Path: loginPath, Handle: func(h Handling) { h.OwnLimits(login) }},
	}
}

// wantOwnLimits asks for the caller's own limits, also on a route where they are not known without
// a login.
func (c *contract) wantOwnLimits(t testing.TB) {
	for range 2 {
		reply := c.get(t, ownPath)
		if limits := reply.ownLimits(); reply.Status != http.StatusOK || len(limits) != 1 || limits[0] != (ownLimit{Name: "own", Limit: 3, Remaining: 3}) {
			t.Errorf("OwnLimits sent %q, want what core.OwnLimits.Reply returns", reply.Body)
		}
		if !c.adapter.RPC && (reply.Header.Get("Content-Type") != "application/json" || reply.Header.Get("Cache-Control") != "no-store") {
			t.Errorf("OwnLimits did not send the headers of core.OwnLimits.SetHeader")
		}
	}
	if reply := c.get(t, loginPath); reply.Status != http.StatusUnauthorized {
		t.Errorf("OwnLimits sent status %d to a caller who has to log in, want 401", reply.Status)
	}
}

// ownLimit is a limit as OwnLimits shows it.
type ownLimit struct {
	Name             string
	Limit, Remaining int
}

// OwnLimitsText returns what the Handling.OwnLimits of an RPC sends.
func OwnLimitsText(limits []core.Decision) string {
	var shown struct{ Limits []ownLimit }
	for _, d := range limits {
		shown.Limits = append(shown.Limits, ownLimit{d.Rule, d.Limit.Max, d.Remaining})
	}
	text, _ := json.Marshal(shown) // names and numbers cannot fail
	return string(text)
}

// ownLimits returns the limits that a reply shows.
func (r Reply) ownLimits() []ownLimit {
	var shown struct{ Limits []ownLimit }
	_ = json.Unmarshal([]byte(r.Body), &shown) // a body that is not JSON shows no limits
	return shown.Limits
}
