package limittest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// TestContractNamesTheMistake makes an adapter wrong in one thing at a time. The contract's first
// complaint must name it.
func TestContractNamesTheMistake(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for wrong, want := range map[string]string{
		"": "",

		"Context":        "View.Context returned <nil>",
		"Method":         `View.Method returned "post", want "POST"`,
		"Path":           `View.Path returned "/shown/7?colour=blue", want "/shown/7"`,
		"Route":          `View.Route returned "/shown/7" for /shown/7 and "/shown/8" for /shown/8, want the one pattern`,
		"Route in Use":   `View.Route in a middleware of the whole router returned "/shown/{id}", want ""`,
		"RemoteAddr":     `View.RemoteAddr returned "invalid IP", want "192.0.2.7"`,
		"Header":         `View.Header("X-Shown") returned []string{"one"}, want []string{"one", "two"}`,
		"Host":           `View.Host returned "", want "service.test"`,
		"Query":          `View.Query("colour") returned "", want "blue"`,
		"Param":          `View.Param("id") returned "", want "7"`,
		"Value":          `View.Value(inFront{}) returned <nil>, want "context"`,
		"stored Value":   `View.Value("limittest") returned <nil>, want "store"`,
		"Size":           `View.Size returned -1, want 5`,
		"unknown Size":   `View.Size returned 0, want -1, or 1`,
		"ResponseHeader": `View.ResponseHeader returned a HeaderWriter whose headers are not sent`,
		"anyCase":        `View.Loose must report anyCase`,
		"anySlash":       `View.Loose must report anySlash`,

		"no Check":          "the middleware did not pass a call to Guard.Check",
		"no refusal":        "the middleware let the handler go on though Answer.Refusal was set",
		"refusal's Status":  "the middleware sent a refusal with status 200, want Refusal.Status, 429",
		"refusal's headers": "the middleware sent a refusal without the headers of Refusal.SetHeader",
		"refusal's Body":    "the middleware sent a refusal without Refusal.Body",
		"no handler":        "the middleware must run the handler when Answer.Refusal is nil",
		"no Run":            "the middleware did not run the handler in Answer.Run",
		"Run's outcome":     "Count received 200, want the outcome that was sent, 404",
		"no Finish":         "as if Response.Finish was not called after Answer.Run",
		"Answer.Context":    "the middleware did not pass Answer.Context to the handler",
		"Allow":             "Allow let the handler go on though Answer.Refusal was set",

		"no recovery":    "GET /recovery/missing: no reply: ",
		"Serve's routes": "GET /contract/free, which no rule is for, got status 404",
		"Serve blocks":   "Serve did not return within 10s",
		"stop blocks":    "the function that Serve returned did not end the server within 10s",
		"no reply":       "GET /contract/free: no reply within 10s",
	} {
		all.Go(func() {
			complaints := complaintsOf(t, func(t testing.TB) {
				a := Adapter{Serve: adapter(wrong).serve, Connect: connectHTTP, Cannot: noRouteInUse}
				a.contract(t)
			})
			if len(complaints) == 0 {
				complaints = []string{""}
			}
			if first := complaints[0]; first != want && (want == "" || !strings.Contains(first, want)) {
				t.Errorf("%s: the complaints are %q, want %q first", wrong, complaints, want)
			}
		})
	}
	all.Wait()
}

var noRouteInUse = map[Feature]string{RouteInUse: "the middleware does not know the mux"}

// TestRunEnds runs whole suites that must fail, each in a process of its own.
func TestRunEnds(t *testing.T) {
	const variable = "ACCESSLIMIT_TEST_SUITE"
	suites := map[string]struct {
		run  func(t *testing.T)
		want string
	}{
		"wrong address": {
			func(t *testing.T) { Run(t, Adapter{Serve: adapter("RemoteAddr").serve, Cannot: noRouteInUse}) },
			"View.RemoteAddr returned",
		},
		"unknown feature": {
			func(t *testing.T) { Run(t, Adapter{Cannot: map[Feature]string{"levitation": "it is heavy"}}) },
			`there is no feature "levitation"; there are ["the route in Use"`,
		},
		"no reason": {
			func(t *testing.T) { Run(t, Adapter{Cannot: map[Feature]string{UnixSockets: ""}}) },
			`"unix sockets" needs a reason`,
		},
		"a scenario that waits": {
			func(t *testing.T) {
				waits := scenario{name: "waits", run: func(t *testing.T, s *site) {
					s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list"}}})
					s.enter(t, newGate(t), "/shop/list")
				}}
				a := Adapter{Serve: adapter("no reply").serve, Connect: connectHTTP}
				a.run(t, append([]scenario{waits}, limitScenarios...), inProcess)
			},
			`the scenario "waits" waited in vain, so those after it are not run`,
		},
	}
	if name := os.Getenv(variable); name != "" {
		suites[name].run(t)
		return
	}
	t.Parallel()
	for name, suite := range suites {
		t.Run(name, func(t *testing.T) {
			process := exec.Command(os.Args[0], "-test.run=^TestRunEnds$", "-test.v", "-test.timeout=60s")
			process.Env = append(os.Environ(), variable+"="+name)
			out, err := process.CombinedOutput()
			if err == nil || !strings.Contains(string(out), suite.want) || strings.Contains(string(out), "allowed_until") {
				t.Errorf("%v, and the output is\n%s\nwant %q", err, out, suite.want)
			}
		})
	}
}

// TestFoldedHeaders holds a server that answers 400 to folded headers to just that.
func TestFoldedHeaders(t *testing.T) {
	t.Parallel()
	run := func(t testing.TB, cannot map[Feature]string) {
		s := &site{adapter: Adapter{Serve: adapter("folded headers").serve, Cannot: cannot}, network: "tcp"}
		s.hops(t, "X-Forwarded-For", lineTricks)
	}
	run(t, map[Feature]string{FoldedHeaders: "a test of those who refuse them"})
	if complaints := complaintsOf(t, func(t testing.TB) { run(t, nil) }); len(complaints) != 4 {
		t.Errorf("without Cannot the complaints are %q, want one for each folded header", complaints)
	}
}

// unfolded answers 400 to a request with a folded header.
type unfolded struct{ net.Listener }

func (l unfolded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return unfoldedConn{conn}, err
}

type unfoldedConn struct{ net.Conn }

func (c unfoldedConn) Read(b []byte) (n int, err error) {
	if n, err = c.Conn.Read(b); bytes.Contains(b[:n], []byte("\n ")) || bytes.Contains(b[:n], []byte("\n\t")) {
		copy(b, "\r\n\r\n\r\n\r\n") // no request line
	}
	return n, err
}

// observed is a test that only notes what it complains of.
type observed struct {
	testing.TB
	mu         sync.Mutex
	complaints []string
	cleanups   []func()
}

func (o *observed) Errorf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complaints = append(o.complaints, fmt.Sprintf(format, args...))
}

func (o *observed) Fatalf(format string, args ...any) {
	o.Errorf(format, args...)
	runtime.Goexit()
}

func (o *observed) Fatal(args ...any) { o.Fatalf("%s", fmt.Sprint(args...)) }
func (o *observed) Cleanup(f func())  { o.cleanups = append(o.cleanups, f) }

// complaintsOf runs a test with what it has to clean up, and returns its complaints.
func complaintsOf(t testing.TB, test func(testing.TB)) []string {
	o := &observed{TB: t}
	var run sync.WaitGroup
	run.Go(func() {
		defer func() {
			for _, cleanUp := range slices.Backward(o.cleanups) {
				cleanUp()
			}
		}()
		test(o)
	})
	run.Wait()
	return o.complaints
}

// adapter is one for net/http. Its text says what is wrong with it; "" is right.
type adapter string

func (a adapter) middleware(limiter *core.Limiter, rules []core.Rule, inUse bool, next http.Handler) http.Handler {
	guard := limiter.MustGuard(rules...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a == "no Check" {
			next.ServeHTTP(w, r)
			return
		}
		answer := guard.Check(view{a, w, r, inUse})
		if answer.Refusal != nil {
			a.refuse(w, answer.Refusal)
			if a != "no refusal" {
				return
			}
		}
		if answer.Context != nil && a != "Answer.Context" {
			r = r.WithContext(answer.Context)
		}
		if a == "no handler" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if a == "no Run" {
			next.ServeHTTP(w, r)
			return
		}
		watched, response := answer.Watch(w, r)
		if a != "no Finish" {
			defer response.Finish()
		}
		answer.Run(func() int {
			next.ServeHTTP(watched, r)
			return wrongly(a, "Run's outcome", 200, response.Status())
		})
	})
}

func (a adapter) refuse(w http.ResponseWriter, refusal *core.Refusal) {
	if a != "refusal's headers" {
		refusal.SetHeader(w.Header())
	}
	w.WriteHeader(wrongly(a, "refusal's Status", 200, refusal.Status))
	if a != "refusal's Body" {
		_, _ = w.Write(refusal.Body)
	}
}

// view is what the adapter shows, with one method wrong.
type view struct {
	adapter
	w     http.ResponseWriter
	r     *http.Request
	inUse bool
}

// wrongly returns the wrong value if that is what is wrong with the adapter.
func wrongly[T any](a adapter, what string, wrong, right T) T {
	if string(a) == what {
		return wrong
	}
	return right
}

func (v view) Context() context.Context {
	return wrongly(v.adapter, "Context", context.Background(), v.r.Context())
}

func (v view) Method() string {
	return wrongly(v.adapter, "Method", strings.ToLower(v.r.Method), v.r.Method)
}

func (v view) Path() string { return wrongly(v.adapter, "Path", v.r.RequestURI, v.r.URL.Path) }

func (v view) Route() string {
	if v.inUse {
		return wrongly(v.adapter, "Route in Use", "/shown/{id}", "")
	}
	_, pattern, _ := strings.Cut(v.r.Pattern, " ")
	return wrongly(v.adapter, "Route", v.r.URL.Path, pattern)
}

func (v view) RemoteAddr() netip.Addr {
	return wrongly(v.adapter, "RemoteAddr", netip.Addr{}, core.PeerAddr(v.r.RemoteAddr))
}

func (v view) Header(name string) []string {
	lines := v.r.Header.Values(name)
	return wrongly(v.adapter, "Header", lines[:min(1, len(lines))], lines)
}

func (v view) Host() string { return wrongly(v.adapter, "Host", "", v.r.Host) }

func (v view) Query(name string) string {
	return wrongly(v.adapter, "Query", "", v.r.URL.Query().Get(name))
}

func (v view) Param(name string) string {
	return wrongly(v.adapter, "Param", "", v.r.PathValue(name))
}

func (v view) Value(key any) any {
	if _, ok := key.(string); ok {
		return wrongly(v.adapter, "stored Value", nil, v.r.Context().Value(key))
	}
	return wrongly(v.adapter, "Value", nil, v.r.Context().Value(key))
}

func (v view) Size() int64 {
	if v.r.ContentLength < 0 {
		return wrongly(v.adapter, "unknown Size", 0, v.r.ContentLength)
	}
	return wrongly(v.adapter, "Size", -1, v.r.ContentLength)
}

func (v view) ResponseHeader() core.HeaderWriter {
	return wrongly(v.adapter, "ResponseHeader", make(http.Header), v.w.Header())
}

func (a adapter) wrap(app App, lists [][]core.Rule, inUse bool, handler http.Handler) http.Handler {
	for _, rules := range slices.Backward(lists) {
		handler = a.middleware(app.Limiter, rules, inUse, handler)
	}
	return handler
}

func (a adapter) serve(t testing.TB, l net.Listener, app App) (stop func()) {
	if a == "Serve blocks" {
		<-t.Context().Done()
		return func() {}
	}
	mux := http.NewServeMux()
	for _, route := range app.Routes {
		if route.Method == "" {
			route.Method = "GET"
		}
		mux.Handle(route.Method+" "+route.Path, a.wrap(app, route.Limits, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route.Serve(handling{a, app.Limiter, w, r})
		})))
	}
	if a == "Serve's routes" {
		mux = http.NewServeMux()
	}
	limited := a.wrap(app, app.Use, true, a.loosely(mux))
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a == "no reply" {
			<-r.Context().Done()
		}
		defer func() {
			if a != "no recovery" && recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		limited.ServeHTTP(w, r.WithContext(app.Enter(r.Context())))
	})}
	if a == "folded headers" {
		l = unfolded{l}
	}
	go func() { _ = server.Serve(l) }()
	return func() {
		_ = server.Close()
		if a == "stop blocks" {
			<-t.Context().Done()
		}
	}
}

// loosely serves other spellings of a path, if the adapter is not to know of it.
func (a adapter) loosely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.URL.Path = wrongly(a, "anyCase", strings.ToLower(r.URL.Path), r.URL.Path)
		inner.URL.Path = wrongly(a, "anySlash", strings.TrimSuffix(inner.URL.Path, "/"), inner.URL.Path)
		next.ServeHTTP(w, inner)
	})
}

type handling struct {
	a       adapter
	limiter *core.Limiter
	w       http.ResponseWriter
	r       *http.Request
}

func (h handling) Context() context.Context { return h.r.Context() }
func (h handling) Reply(status int)         { http.Error(h.w, "replied", status) }
func (h handling) Text(text string) {
	h.w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = h.w.Write([]byte(text))
}

func (h handling) Allow(check *core.Check, subject string) bool {
	answer := check.Allow(view{h.a, h.w, h.r, false}, subject)
	if answer.Refusal == nil {
		return true
	}
	h.a.refuse(h.w, answer.Refusal)
	return h.a == "Allow"
}
