package limittest

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// contract serves one app and makes a few calls: one for each thing that an adapter must do. A
// mistake is named here, before the scenarios meet what follows from it.
func (a Adapter) contract(t testing.TB) {
	c := &contract{site: &site{adapter: a, network: "tcp", peers: new(from)}, ended: make(chan int, 10)}
	c.peers.show(peerNamed(t, shownPeer))
	limiter := c.limiter(t, func(o *core.Options) { o.Expose = true })
	c.serve(t, App{
		Limiter: limiter,
		Before:  func(ctx context.Context) context.Context { return context.WithValue(ctx, inFront{}, "context") },
		Values:  map[string]string{"limittest": "store"},
		Use: limit(
			core.Rule{Name: "use", Seconds: 600, MaxCount: mostPermits, Paths: []string{"/shown/*"}, Key: show(&c.inUse)},
			core.Rule{Name: "plain", Seconds: 600, MaxCount: mostPermits, Paths: []string{plainPath}, Key: show(&c.plain)},
			core.Rule{Name: "slash", Seconds: 600, MaxCount: mostPermits, Paths: []string{plainPath + "/"}, Key: show(&c.slash)},
		),
		Routes: c.routes(limiter.MustCheck(once(nil))),
	})
	if reply := c.get(t, freePath); reply.Status != http.StatusOK || reply.Body != "ok" {
		t.Fatalf(`GET %s, which no rule is for, got status %d and %q, want 200 and "ok": Adapter.Serve must serve all routes, and the middleware must run the handler when Answer.Refusal is nil`, freePath, reply.Status, reply.Body)
	}
	c.wantView(t)
	c.wantRefusal(t)
	c.wantEnding(t)
	c.wantExposed(t)
	if !a.RPC {
		c.wantLoose(t)
		c.wantAllow(t)
	}
}

// The paths of the contract's app. "/shown/7" is a path of /shown/{id}, or a method of an RPC.
const (
	freePath    = "/contract/free"
	plainPath   = "/contract/plain"
	refusedPath = "/contract/refused"
	endingPath  = "/contract/ending"
	exposedPath = "/contract/exposed"
	allowPath   = "/contract/allow"

	shownPeer = "192.0.2.7"
)

// contract is one run of it.
type contract struct {
	*site
	shown, inUse, plain, slash views
	ran                        atomic.Int32 // how often a handler ran that a limit lets run once
	ended                      chan int     // what Count received
}

// inFront is the key of a context value from a middleware in front.
type inFront struct{}

func (c *contract) routes(check *core.Check) []Route {
	shown := Route{Method: http.MethodPost, Path: "/shown/{id}", Limits: limit(
		core.Rule{Name: "shown", Seconds: 600, MaxCount: mostPermits, Key: show(&c.shown)},
	)}
	if c.adapter.RPC {
		shown.Method, shown.Path = "", "/shown/7"
	}
	counted := core.Rule{Name: "counted", Seconds: 600, MaxCount: mostPermits, Count: func(outcome int) bool {
		c.ended <- outcome
		return true
	}}
	return []Route{
		shown, {Path: freePath}, {Path: plainPath},
		{Path: refusedPath, Limits: limit(once(nil)), Handle: func(h Handling) { c.ran.Add(1); h.Text("ok") }},
		{Path: endingPath, Limits: limit(counted), Handle: func(h Handling) { h.Reply(http.StatusNotFound) }},
		{Path: exposedPath, Limits: limit(core.Rule{Name: "exposed", Seconds: 600}), Handle: func(h Handling) {
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

// wantView makes a call whose parts are known, and compares what each method of the View returned.
func (c *contract) wantView(t testing.TB) {
	reply := c.sendShown(t)
	v, inUse := c.shown.last(), c.inUse.last()
	if v == nil {
		t.Fatalf("the middleware did not pass a call to Guard.Check, and sent status %d", reply.Status)
	}
	for _, method := range c.methods(v, inUse) {
		if !reflect.DeepEqual(method.got, method.want) {
			t.Errorf("View.%s returned %#v, want %#v: %s", method.name, method.got, method.want, method.is)
		}
	}
	switch {
	case reply.Status != http.StatusOK:
		t.Errorf("a call within its limits got status %d, want the handler's 200", reply.Status)
	case !strings.Contains(strings.Join(reply.Header.Values("Ratelimit"), ", "), `"shown"`):
		t.Errorf("View.ResponseHeader returned a HeaderWriter whose headers are not sent: the reply has no RateLimit; it has %q", reply.Header)
	}
	if c.adapter.RPC {
		return
	}
	route := v.route
	c.doRaw(t, http.MethodPost, "/shown/8", "Transfer-Encoding: chunked", "", "1", "x", "0")
	if v = c.shown.last(); v.size != -1 && v.size != 1 {
		t.Errorf("View.Size returned %d, want -1, or 1: the length of a body in chunks is not known before it is read", v.size)
	}
	if v.route != route || !strings.HasPrefix(route, "/shown/") || strings.HasPrefix(route, "/shown/7") {
		t.Errorf("View.Route returned %q for /shown/7 and %q for /shown/8, want the one pattern that the framework matched, without method and host", route, v.route)
	}
}

// sendShown makes the call that methods describes.
func (c *contract) sendShown(t testing.TB) Reply {
	if c.adapter.RPC {
		return c.get(t, "/shown/7", "Host: service.test", "X-Shown: one", "X-Shown: two")
	}
	return c.doRaw(t, http.MethodPost, "/shown/7?colour=blue", append([]string{"X-Shown: one", "X-Shown: two"}, body(5)...)...)
}

// viewMethod is what a method of the View returned and should have.
type viewMethod struct {
	name      string
	got, want any
	is        string
}

// methods compares the View of sendShown's call, on its route and in a middleware of the whole
// router.
func (c *contract) methods(v, inUse *viewed) []viewMethod {
	all := []viewMethod{
		{"Context", v.context, "context", "the call's own context, which holds what a middleware in front put there"},
		{"Method", v.method, http.MethodPost, "the method of the request"},
		{"Path", v.path, "/shown/7", "the path, without the query"},
		{"RemoteAddr", v.addr, shownPeer, "the address of the connection's peer"},
		{`Header("X-Shown")`, v.header, []string{"one", "two"}, "every line of the header, in order"},
		{"Host", v.host, "service.test", "the host, wherever the framework keeps it"},
		{`Query("colour")`, v.query, "blue", "the first value of a parameter of the query"},
		{`Param("id")`, v.param, "7", "what the wildcard of the route /shown/{id} matched"},
		{`Value("limittest")`, v.stored, "store", "what a middleware in front left in the framework's own store"},
		{"Value(inFront{})", v.value, "context", "what a middleware in front left in the context, if the framework's store has nothing"},
		{"Size", v.size, int64(5), "the length of the body"},
	}
	if c.adapter.RPC {
		all[1].want, all[1].is = "", "an RPC has no method"
		all[5].want, all[5].is = "service.test", "the :authority"
		all[6].want, all[6].is = "", "an RPC has no query"
		all[7].want, all[7].is = "", "an RPC's method has no wildcards"
		all[10].want, all[10].is = int64(-1), "the length of an RPC's message is not known"
		all = append(all, viewMethod{"Route", v.route, v.path, "the full method"})
	}
	switch {
	case inUse == nil:
		all = append(all, viewMethod{"Path in a middleware of the whole router", "", "/shown/7", "a rule for /shown/* was not asked"})
	case c.adapter.can(RouteInUse):
		all = append(all, viewMethod{"Route in a middleware of the whole router", inUse.route, v.route,
			"the pattern that the framework will match; if it is not known, return \"\" and name RouteInUse in Adapter.Cannot"})
	default:
		all = append(all, viewMethod{"Route in a middleware of the whole router", inUse.route, "", "Adapter.Cannot says that it is not known there"})
	}
	return all
}

// wantRefusal makes a call too many.
func (c *contract) wantRefusal(t testing.TB) {
	c.ran.Store(0)
	if reply := c.get(t, refusedPath); reply.Status != http.StatusOK || c.ran.Load() != 1 {
		t.Fatalf("a call within its limit got status %d and ran the handler %d times, want 200 and once: a nil Answer.Refusal lets the call go on", reply.Status, c.ran.Load())
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

// wantEnding makes a call that the handler ends with 404.
func (c *contract) wantEnding(t testing.TB) {
	reply := c.get(t, endingPath)
	if reply.Status != http.StatusNotFound {
		t.Fatalf("a call whose handler replied 404 got status %d", reply.Status)
	}
	select {
	case outcome := <-c.ended:
		if outcome != reply.Outcome {
			t.Errorf("the function passed to Answer.Run returned what made Count receive %d, want the outcome that was sent, %d", outcome, reply.Outcome)
		}
	case <-time.After(patience):
		t.Errorf("the middleware did not run the handler in Answer.Run: Count received nothing within %v", patience)
	}
}

// wantExposed makes a call whose handler looks for its decision.
func (c *contract) wantExposed(t testing.TB) {
	if reply := c.get(t, exposedPath); reply.Body != "exposed" {
		t.Errorf("the middleware did not pass Answer.Context to the handler, which found the decision of %q in its context", reply.Body)
	}
}

// wantLoose makes calls by other spellings of a path. Where the framework serves one, a rule for
// either spelling must be asked.
func (c *contract) wantLoose(t testing.TB) {
	const complaint = "the framework serves %s as %s, and a rule for one was not asked of the other: View.Loose must report %s"
	if other := "/Contract/PLAIN"; c.get(t, other).Status == http.StatusOK && c.plain.last() == nil {
		t.Errorf(complaint, other, plainPath, "anyCase")
	}
	if other := plainPath + "/"; c.get(t, other).Status == http.StatusOK {
		c.slash.clear()
		if c.get(t, plainPath); c.slash.last() == nil {
			t.Errorf(complaint, other, plainPath, "anySlash")
		}
	}
}

// wantAllow makes calls whose handler asks for itself.
func (c *contract) wantAllow(t testing.TB) {
	c.ran.Store(0)
	if reply := c.get(t, allowPath); reply.Status != http.StatusOK || reply.Body != "ok" {
		t.Fatalf("Allow within the limit: status %d and %q, want the handler's reply", reply.Status, reply.Body)
	}
	c.refused(t, "Allow", c.get(t, allowPath))
}

// viewed is what the methods of a View returned.
type viewed struct {
	context, stored, value any
	method, path, route    string
	addr                   string
	host, query, param     string
	header                 []string
	size                   int64
}

// views holds what was shown last.
type views struct {
	mu  sync.Mutex
	own *viewed
}

func (v *views) last() *viewed {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.own
}

func (v *views) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.own = nil
}

// show is a key function that notes what it is shown. A Request outside of the call may change, so
// all of it is copied.
func show(to *views) core.KeyFunc {
	return func(r core.Request) (string, error) {
		v := &viewed{
			context: r.Context().Value(inFront{}), stored: r.Value("limittest"), value: r.Value(inFront{}),
			method: strings.Clone(r.Method()), path: strings.Clone(r.Path()), route: strings.Clone(r.Route()),
			addr: r.RemoteAddr().Unmap().String(), size: r.Size(),
		}
		for _, line := range r.Header("X-Shown") {
			v.header = append(v.header, strings.Clone(line))
		}
		v.host, v.query, v.param = strings.Clone(r.Host()), strings.Clone(r.Query("colour")), strings.Clone(r.Param("id"))
		to.mu.Lock()
		defer to.mu.Unlock()
		to.own = v
		return "anybody", nil
	}
}
