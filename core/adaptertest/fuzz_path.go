package adaptertest

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// FuzzPaths sends arbitrary request targets to the real server of a framework, once for each
// configuration of its router. If a handler runs, three things must hold: the rules of the whole
// router that apply to its route were charged, no other route was treated as an excepted one, and
// the rule of the route counted the call under the one name of this route. Only the router decides
// what a path means; nothing here interprets paths.
//
//	func FuzzPaths(f *testing.F) { adaptertest.FuzzPaths(f, adaptertest.Adapter{Serve: serve}) }
func FuzzPaths(f *testing.F, configurations ...Adapter) {
	sites := make([]*routed, len(configurations))
	for i, adapter := range configurations {
		sites[i] = newRouted(f, adapter)
		sites[i].wantAllServed(f, i)
	}
	for _, target := range slices.Concat(spelledTargets, fuzzTargets) {
		for method := range fuzzMethods {
			f.Add(byte(method), target)
		}
	}
	for i := range pathWords { // every pair of words
		for k := range pathWords {
			f.Add(byte(0), string([]byte{byte(1 + i), byte(1 + k)}))
			f.Add(byte(0), string([]byte{byte(1 + i), byte(1 + k), byte(1 + i), 'x'}))
		}
	}
	f.Fuzz(func(t *testing.T, method byte, target string) {
		if target = spelled(target); strings.ContainsAny(target, " \r\n") || len(target) > 2000 {
			return // the request line would be another one, or invalid
		}
		for i, site := range sites {
			site.try(t, i, fuzzMethods[int(method)%len(fuzzMethods)], target)
		}
	})
}

// mostPermits is a MaxCount too large to be used up in a test.
const mostPermits = min(1_000_000_000_000, math.MaxInt-1)

var fuzzMethods = [...]string{"GET", "HEAD", "POST", "OPTIONS", "post", "BREW"}

// pathWords are parts of paths with a meaning to routers. In the fuzzer's input, the bytes from 1
// on stand for them. The fuzzer can still send these control characters themselves as %01 and so
// on.
var pathWords = [...]string{
	"/limit", "/free", "/files", "/admin", "/at", "/open", "/sl", "/any", "/..", "/x", "limit/", "free/", "../", "%2f", "%2e%2e", "/%2e", "/.", "//",
}

// spelled returns a target with its words written out.
func spelled(target string) string {
	var text strings.Builder
	for i := range len(target) {
		if c := int(target[i]); c > 0 && c <= len(pathWords) {
			text.WriteString(pathWords[c-1])
		} else {
			text.WriteByte(target[i])
		}
	}
	return text.String()
}

// fuzzTargets are the registered routes, and spellings that may confuse excepted paths with others.
var fuzzTargets = []string{
	"/limit/7", "/limit/free", "/limit/free/x", "/files/a/b", "/files/", "/at/acme/admin", "/open/x", "/free/x", "/free", "/sl/", "/sl", "/sl/x", "/any/x",
	"/limit/free/../admin", "/limit/free/%2e%2e/admin", "/limit/free%2f..%2fadmin", "/limit/free%2Fx", "/limit//free", "/limit/free//x", "/limit/FREE/x",
	"/limit/free/x/", "/limit/free/x/y", "/limit/fre%65", "/free%2f..%2flimit/admin", "/free/..", "/free/%2e", "/free/%2e%2e", "/free/x%2fy", "/free/x/y",
	"/files/../free/x", "/files/%2e%2e/free/x", "/files/..%2ffree%2fx", "/files/%2e%2e%2flimit%2ffree", "/at/free%2fx/admin", "/at/..%2f..%2ffree/admin",
	"/at/%2e%2e/admin", "/open/..", "/open/%2e%2e", "/open/a%2fb", "/open/a/b", "//free/x", "/./free/x", "/%66ree/x", "/free/x?y", "/free/x#y", "*", "/",
	"http://service.test/free/x", "http://service.test", "/limit/%zz", "/free/%zz", "/free/%", "/free/%00", "/free/\x80", "/free/%ff", "/free/%252e%252e",
	"/limit+free", "/free/+", "/free/x;/../y", "/FREE/x", "/Free/../limit/admin", "/limit\\admin", "/free/..%5climit", "/.../free/x", "/free/x/%2e%2e/",
}

// routed is an app behind a router. It notes which handlers ran and which decisions were made.
type routed struct {
	pipes *pipes

	mu        sync.Mutex
	ran       []string // the routes whose handlers ran, as the app spells them
	decisions []core.Decision
	names     map[string]string // by route: the path in the name of its counter
}

// The rules of the whole router, and the routes to which treeRule applies.
var (
	treeRule = core.Rule{
		Name: "tree", Seconds: 600, MaxCount: mostPermits, Paths: []string{"/limit/**", "/files/**", "/at/*/admin", "/open/*", "/sl/**"},
		Except: []string{"/limit/free", "/limit/free/**"},
	}
	mostRule = core.Rule{Name: "most", Seconds: 600, MaxCount: mostPermits, Except: []string{"/free/**"}}
	postRule = core.Rule{Name: "posts", Seconds: 600, MaxCount: mostPermits, Methods: []string{"POST"}}

	inTree = []string{"/limit/admin", "/limit/{id}", "/files/{rest...}", "/at/{tenant}/admin", "/open/{id}", "/sl/"}
	// others come first, for routers where the order matters.
	others = []string{"/limit/free", "/limit/free/{name}", "/free/{name}", "/any/{id}"}
)

// wantAllServed checks that each route serves its own path. Otherwise the fuzzing would prove
// nothing.
func (r *routed) wantAllServed(f *testing.F, configuration int) {
	f.Helper()
	plain := strings.NewReplacer("{rest...}", "a/b", "{id}", "7", "{name}", "x", "{tenant}", "acme")
	for _, route := range slices.Concat(others, inTree) {
		if r.try(f, configuration, "GET", plain.Replace(route)); !slices.Equal(r.ran, []string{route}) {
			f.Fatalf("configuration %d: GET %s ran %q", configuration, plain.Replace(route), r.ran)
		}
	}
	if r.try(f, configuration, "GET", "/free/x"); r.charged(mostRule.Name) != 0 {
		f.Fatalf("configuration %d: an excepted route is charged", configuration)
	}
}

// rulesFor returns the names of the rules that must have been charged when this handler ran.
func rulesFor(method, route string) (names []string) {
	if slices.Contains(inTree, route) {
		names = append(names, treeRule.Name)
	}
	if route != "/free/{name}" {
		names = append(names, mostRule.Name)
	}
	if strings.EqualFold(method, "POST") {
		names = append(names, postRule.Name)
	}
	return names
}

func newRouted(f *testing.F, adapter Adapter) *routed {
	r := &routed{pipes: newPipes(), names: make(map[string]string)}
	app := App{Use: [][]core.Rule{{treeRule}, {mostRule}, {postRule}}}
	app.Limiter = newLimiter(f, core.Options{MaxKeys: 1000, Logger: silent, OnDecision: func(_ context.Context, e core.Event) {
		d := e.Decision

		r.mu.Lock()
		defer r.mu.Unlock()
		r.decisions = append(r.decisions, d)
	}})
	for _, path := range slices.Concat(others, inTree) {
		route := Route{Path: path, limits: limit(core.Rule{Seconds: 600, MaxCount: mostPermits}), Handle: func(h Handling) {
			r.mu.Lock()
			r.ran = append(r.ran, path)
			r.mu.Unlock()
			h.Text("ok")
		}}
		if path == "/any/{id}" {
			route.Method = "*"
		}
		app.Routes = append(app.Routes, route)
	}
	adapter.serve(f, r.pipes, app)
	return r
}

// try makes one call and checks its result.
func (r *routed) try(t testing.TB, configuration int, method, target string) {
	t.Helper()
	r.mu.Lock()
	r.ran, r.decisions = nil, nil
	r.mu.Unlock()
	r.send(t, method, target)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ran) > 1 {
		t.Fatalf("configuration %d: %s %q ran %q", configuration, method, target, r.ran)
	}
	for _, route := range r.ran {
		for _, name := range rulesFor(method, route) {
			if n := r.charged(name); n != 1 {
				t.Errorf("configuration %d: %s %q ran the handler of %s, and charged the rule %q %d times", configuration, method, target, route, name, n)
			}
		}
		r.wantOneName(t, configuration, method, target, route)
	}
}

// send makes a call and waits until the server has closed the connection, because the call has
// ended by then.
func (r *routed) send(t testing.TB, method, target string) {
	t.Helper()
	conn, err := r.pipes.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: service.test\r\nConnection: close\r\n\r\n", method, target)
	if _, err := io.Copy(io.Discard, conn); err != nil && err != io.ErrClosedPipe {
		t.Fatalf("%s %q: %v", method, target, err)
	}
}

// charged returns how often the rule let the last call pass and counted it.
func (r *routed) charged(name string) (times int) {
	for _, d := range r.decisions {
		if d.Rule == name && d.Reason == core.Allowed && d.Source == core.FromMemory {
			times++
		}
	}
	return times
}

// wantOneName checks that the unnamed rule of a route counted the call under the name that only
// this route has.
func (r *routed) wantOneName(t testing.TB, configuration int, method, target, route string) {
	t.Helper()
	own := r.decisions[len(r.decisions)-1]
	counted, path, _ := strings.Cut(own.Rule, " ")
	if own.Reason != core.Allowed || own.Source != core.FromMemory || !slices.Contains([]string{"GET", "POST", "OPTIONS", "OTHER"}, counted) {
		t.Errorf("configuration %d: %s %q: the rule of %s answered %+v", configuration, method, target, route, own)
	}
	if r.names[route] == "" {
		r.names[route] = path
	}
	for known, name := range r.names {
		if (known == route) != (name == path) {
			t.Errorf("configuration %d: %s %q: %s counts under %q, %s under %q", configuration, method, target, route, path, known, name)
		}
	}
}
