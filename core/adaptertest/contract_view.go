package adaptertest

import (
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

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
		t.Errorf("View.ResponseHeader returned a HeaderWriter whose headers are not sent: "+
			"the reply has no RateLimit, only %q", reply.Header)
	}
	if !c.adapter.RPC {
		c.wantOtherView(t, v.route)
	}
}

// wantOtherView makes another call of the same route, with a body whose length is not declared.
func (c *contract) wantOtherView(t testing.TB, route string) {
	c.doRaw(t, http.MethodPost, "/shown/8", "Transfer-Encoding: chunked", "", "1", "x", "0")
	v := c.shown.last()
	if v.size != -1 && v.size != 1 {
		t.Errorf("View.Size returned %d, want -1, or 1: "+
			"the length of a body in chunks is not known before it is read", v.size)
	}
	if v.route != route || !strings.HasPrefix(route, "/shown/") || strings.HasPrefix(route, "/shown/7") {
		t.Errorf("View.Route returned %q for /shown/7 and %q for /shown/8, "+
			"want the one pattern that the framework matched, without method and host", route, v.route)
	}
}

// sendShown makes the call whose parts methods expects.
func (c *contract) sendShown(t testing.TB) Reply {
	headers := []string{"X-Shown: one", "X-Shown: two"}
	if c.adapter.RPC {
		return c.get(t, "/shown/7", append(headers, "Host: service.test")...)
	}
	headers = append(headers, "Cookie: colour=red; colour=green")
	return c.doRaw(t, http.MethodPost, "/shown/7?colour=blue", append(headers, body(5)...)...)
}

// viewMethod is what a method of the View returned and should have returned.
type viewMethod struct {
	name      string
	got, want any
	is        string
}

// methods returns what the View's methods returned for sendShown's call in the middleware of its
// route, with the correct results.
func (c *contract) methods(v, inUse *viewed) []viewMethod {
	all := []viewMethod{
		{"Context", v.context, "context", "the call's own, which holds what a middleware in front put there"},
		{"Path", v.path, "/shown/7", "the path, without the query"},
		{"RemoteAddr", v.addr, shownPeer, "the address of the connection's peer"},
		{"Host", v.host, "service.test", "the host, wherever the framework keeps it"},
		{`Header("X-Shown")`, v.header, []string{"one", "two"}, "every line of the header, in order"},
		{`Value("adaptertest")`, v.stored, "store", "what a middleware left in the framework's own store"},
		{"Value(inFront{})", v.value, "context", "what a middleware left in the context, if not in the store"},
	}
	if c.adapter.RPC {
		all = append(all, []viewMethod{
			{"Method", v.method, "", "an RPC has no method"},
			{"Route", v.route, "/shown/7", "the full method"},
			{`Query("colour")`, v.query, "", "an RPC has no query"},
			{`Param("id")`, v.param, "", "an RPC's method has no wildcards"},
			{"Size", v.size, int64(-1), "the length of an RPC's message is not known"},
		}...)
	} else {
		all = append(all, []viewMethod{
			{"Method", v.method, http.MethodPost, "the method of the request"},
			{`Query("colour")`, v.query, "blue", "the first value of a parameter of the query"},
			{`Param("id")`, v.param, "7", "what the wildcard of the route /shown/{id} matched"},
			{`Cookie("colour")`, v.cookie, "red", "the first cookie of this name, as the framework's own getter returns it"},
			{"Size", v.size, int64(5), "the length of the body"},
		}...)
	}
	return append(all, c.methodInUse(v, inUse))
}

// methodInUse does the same for the method Route in a middleware of the whole router.
func (c *contract) methodInUse(v, inUse *viewed) viewMethod {
	const in = " in a middleware of the whole router"
	switch {
	case inUse == nil:
		return viewMethod{"Path" + in, "", "/shown/7", "a rule for /shown/* was not applied"}
	case c.adapter.can(RouteInUse):
		return viewMethod{"Route" + in, inUse.route, v.route,
			`the pattern that the framework will match; if that is not known, return "" and name RouteInUse in Adapter.Cannot`}
	default:
		return viewMethod{"Route" + in, inUse.route, "", "Adapter.Cannot says that it is not known there"}
	}
}

// wantLoose calls a path by other spellings. If the framework serves one of them, a rule for either
// spelling must apply.
func (c *contract) wantLoose(t testing.TB) {
	const complaint = "the framework serves %s as %s, but a rule for one was not applied to the other: " +
		"View.Loose must report %s"
	if other := "/Contract/PLAIN"; c.get(t, other).Status == http.StatusOK && c.plain.last() == nil {
		t.Errorf(complaint, other, plainPath, "anyCase")
	}
	if other := plainPath + "/"; c.get(t, other).Status == http.StatusOK {
		c.slash.set(nil)
		if c.get(t, plainPath); c.slash.last() == nil {
			t.Errorf(complaint, other, plainPath, "anySlash")
		}
	}
}

// viewed is what the methods of a View returned.
type viewed struct {
	context, stored, value any
	method, path, route    string
	addr, host             string
	query, param, cookie   string
	header                 []string
	size                   int64
}

// views notes what a rule was shown last.
type views struct {
	mu   sync.Mutex
	seen *viewed
}

// rule returns a rule that records what it is shown of each call and lets all calls pass.
func (v *views) rule(name string, paths ...string) core.Rule {
	return core.Rule{Name: name, Seconds: 600, MaxCount: mostPermits, Paths: paths, Key: v.note}
}

// note is a key function that records the call. It copies the strings, because they are valid only
// during the call.
func (v *views) note(r core.Request) (string, error) {
	seen := &viewed{
		context: r.Context().Value(inFront{}), stored: r.Value("adaptertest"), value: r.Value(inFront{}),
		method: strings.Clone(r.Method()), path: strings.Clone(r.Path()), route: strings.Clone(r.Route()),
		addr: r.RemoteAddr().Unmap().String(), host: strings.Clone(r.Host()),
		query: strings.Clone(r.Query("colour")), param: strings.Clone(r.Param("id")),
		cookie: strings.Clone(r.Cookie("colour")), size: r.Size(),
	}
	for _, line := range r.Header("X-Shown") {
		seen.header = append(seen.header, strings.Clone(line))
	}
	v.set(seen)
	return "anybody", nil
}

func (v *views) set(seen *viewed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = seen
}

// last returns what the rule was shown last, or nil.
func (v *views) last() *viewed {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}
