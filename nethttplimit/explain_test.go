package nethttplimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// Explain says what a request on the wire gets, however its method, path, host and the headers of
// proxies are spelled.
func TestExplainAgreesWithTheWire(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 9))
	refused := 0
	for range 40 {
		w := newWire(t, random)
		for range 40 {
			refused += w.explainThenCall(t, random)
		}
	}
	if refused < 200 || refused > 1200 {
		t.Errorf("%d of 1600 calls were refused: the test shows too little", refused)
	}
}

// methods are those of calls.
var methods = []string{"GET", "HEAD", "POST", "DELETE", "get", "PURGE", "OPTIONS"}

// wire is a connection to a service.
type wire struct {
	net.Conn
	replies *bufio.Reader
	limiter *core.Limiter
	rules   []core.Rule
	last    core.Decision
}

func pick(random *rand.Rand, texts ...string) string { return texts[random.IntN(len(texts))] }

// newWire starts a service with rules of many kinds, in front of a router and on its routes, which
// have been called.
func newWire(t *testing.T, random *rand.Rand) *wire {
	w := new(wire)
	var err error
	if w.limiter, err = core.New(core.Options{
		ClientIP:   core.ClientIP{TrustedProxies: []string{"127.0.0.0/8", "10.0.0.0/8"}},
		OnDecision: func(_ context.Context, e core.Event) { w.last = e.Decision },
	}); err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { w.limiter.Close() })
	for i := range 1 + random.IntN(3) {
		w.rules = append(w.rules, drawRule(random, fmt.Sprint(i)))
	}
	mux, ok := http.NewServeMux(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	byID := core.Rule{Name: "id", Seconds: 6000, MaxCount: 2, Key: func(r core.Request) (string, error) { return "id:" + r.Param("id"), nil }}
	mux.Handle("/users/{id}", nethttplimit.New(w.limiter, byID)(ok))
	mux.Handle("/café/{id}/menu", nethttplimit.New(w.limiter, core.Rule{Name: "cafe", Seconds: 6000, MaxCount: 2})(ok))
	mux.Handle("/static/", nethttplimit.New(w.limiter, core.Rule{Name: "static", Seconds: 6000, MaxCount: 3})(ok))
	server := httptest.NewServer(nethttplimit.New(w.limiter, w.rules...)(http.HandlerFunc(mux.ServeHTTP)))
	bounded.Cleanup(t, server.Close)
	connected := dial(t, server.Listener.Addr().String())
	w.Conn, w.replies = connected.Conn, connected.replies
	for _, method := range methods {
		for _, path := range []string{"/users/9", "/caf%C3%A9/9/menu", "/static/9/9"} {
			w.call(t, operate.Call{Method: method, Path: path, Host: "first.example", Header: http.Header{"X-Forwarded-For": {"192.0.2.99"}}})
		}
	}
	return w
}

// dial returns a connection to a service.
func dial(t *testing.T, address string) *wire {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { conn.Close() })
	return &wire{Conn: conn, replies: bufio.NewReader(conn)}
}

func drawRule(random *rand.Rand, name string) core.Rule {
	r := core.Rule{Name: name, Seconds: 6000, MaxCount: 1 + random.IntN(9)}
	if random.IntN(2) == 0 {
		r.Paths = []string{pick(random, "/users/**", "/a/*", "/café/**", "/a/b?c", "/a?b", "/A/*", "/a%2Fb", "/x*")}
	}
	if random.IntN(2) == 0 {
		r.Except = []string{pick(random, "/users/**", "/a/*", "/café/**", "/a/b?c", "/a?b", "/healthz", "/users/1", "/a/b", "/café/1/menu")}
	}
	if random.IntN(3) == 0 {
		r.Methods = []string{pick(random, "GET", "POST", "DELETE")}
	}
	switch random.IntN(5) {
	case 0:
		r.Key = func(r core.Request) (string, error) { return "host:" + r.Host(), nil }
	case 1:
		r.Key = func(r core.Request) (string, error) { return "header:" + strings.Join(r.Header("x-api-key"), ","), nil }
	case 2:
		r.Key = func(r core.Request) (string, error) { return "query:" + r.Query("q"), nil }
	}
	return r
}

// explainThenCall compares the explanation of a call with what it gets, and returns 1 if that is a
// refusal.
func (w *wire) explainThenCall(t *testing.T, random *rand.Rand) (refused int) {
	t.Helper()
	info := operate.Call{
		Method: pick(random, methods...), RemoteAddr: w.LocalAddr().String(), Header: make(http.Header),
		Path: pick(random, "/users/1", "/users/%31", "/a/b", "/a%2Fb", "/a%252Fb", "/a/b%20c", "/a%20b", "/caf%C3%A9/1/menu", "/café/1", "/x%25",
			"/a/../users/1", "//a/b", "/a/./b", "/healthz", "/A/b", "/users/a%2Fb", "/users/%2541", "/users/A", "/a;b/c", "/a/b%3F", "/", "/static/css/1"),
		Host: pick(random, "a.example", "A.example:80", "b.example.", "[::1]:80", "a.example:8080"),
	}
	info.Path += pick(random, "", "", "", "?q=1", "?q=%31", "?q=a;b", "?q=1&q=2", "??q=1", "?q=a%zz", "?")
	name := pick(random, "X-Forwarded-For", "x-forwarded-for", "X-API-KEY", "x-api-key")
	for range random.IntN(3) {
		info.Header[name] = append(info.Header[name], pick(random, "192.0.2.1", "192.0.2.2, 10.0.0.1", "junk", "2001:db8::1, 127.0.0.1", "", "192.0.2.1,"))
	}
	x, err := operate.New(w.limiter).Explain(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	w.last = core.Decision{Reason: core.Allowed}
	status := w.call(t, info)
	if status == http.StatusTooManyRequests {
		refused = 1
	}
	if x.Reason != w.last.Reason || x.Reason != core.Allowed && x.Rule != w.last.Rule {
		t.Fatalf("%+v: status %d, %+v, explained:\n%v\n%+v", info, status, w.last, x, w.rules)
	}
	return refused
}

// call makes a call as it is written, and returns the status.
func (w *wire) call(t *testing.T, info operate.Call) (status int) {
	t.Helper()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", info.Method, info.Path, info.Host)
	for name, lines := range info.Header {
		for _, line := range lines {
			request += name + ": " + line + "\r\n"
		}
	}
	if _, err := io.WriteString(w, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(w.replies, &http.Request{Method: info.Method})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode
}
