package faults_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const oversized = "1 MB headers, 10,000 cookies, 1,000 hops, paths of 500 kB"

// roomy is the number of bytes of headers that servers accept here. It is more than their default,
// so that large headers reach the limits.
const roomy = 4 << 20

// TestOversized sends headers and paths that are as large as a server accepts. Each caller must
// have one counter, under a key of at most 200 bytes, and no call may take long.
func TestOversized(t *testing.T) {
	server := redistest.Start(t)
	calls, longest := 0, time.Duration(0)
	for _, f := range everyFramework(roomy) {
		t.Run(f.name, func(t *testing.T) {
			s := newOversizedService(t, f, server)
			s.run(t)
			s.wantShortKeys(t, server)
			calls += s.calls
			longest = max(longest, s.longest)
		})
	}
	if !t.Failed() {
		report(t, oversized, "%d calls in five frameworks: each caller has one counter and is refused after one call, keys under 200 bytes; slowest call %v",
			calls, longest.Round(time.Millisecond))
	}
}

// oversizedService is an app, and a client of it.
type oversizedService struct {
	rpc      bool
	readsAll bool // the framework reads any number of cookies
	prefix   string
	client   adaptertest.Client
	counted  atomic.Value // the subject of the last decision
	callers  map[string]bool
	calls    int
	longest  time.Duration
}

func newOversizedService(t *testing.T, f framework, server *redistest.Server) *oversizedService {
	t.Helper()
	s := &oversizedService{rpc: f.RPC, readsAll: f.name == "fiber", prefix: "oversized-" + strings.ReplaceAll(f.name, "/", "-"), callers: make(map[string]bool)}
	limiter := limitertest.New(t, core.Options{
		Redis: server.Client(t), Prefix: s.prefix, Timeout: 10 * time.Second,
		ClientIP:   core.ClientIP{TrustedProxies: []string{"127.0.0.0/8"}},
		Identify:   core.Cookie("session", func(_ context.Context, token string) (string, error) { return token, nil }),
		OnDecision: func(_ context.Context, e core.Event) { s.counted.Store(e.Decision.Key) },
	})
	one := func(name string, change func(*core.Rule)) []*core.Guard {
		rule := core.Rule{Name: name, Seconds: 600, MaxCount: 1}
		change(&rule)
		return []*core.Guard{limiter.MustGuard(rule)}
	}
	app := adaptertest.App{Limiter: limiter, Routes: []adaptertest.Route{
		{Path: "/shop/key", Guards: one("key", func(r *core.Rule) { r.Key = core.ByHeader("X-Key") })},
		{Path: "/shop/user", Guards: one("user", func(r *core.Rule) { r.NeedLogin = true })},
		{Path: "/shop/anyone", Guards: one("anyone", func(r *core.Rule) { r.Key = core.ByUser })},
		{Path: "/shop/hops", Guards: one("hops", func(*core.Rule) {})},
	}}
	if !f.RPC {
		app.Routes = append(app.Routes, adaptertest.Route{Path: "/item/{id}", Guards: one("", func(*core.Rule) {})},
			adaptertest.Route{Path: "/deep/{rest...}", Guards: one("deep", func(r *core.Rule) { r.Paths = []string{"/**/admin/**/edit/**/{a,b}*c", "/deep/**"} })})
	}
	dial := listenAndServe(t, f, app)
	s.client = f.connect(t, dial)
	bounded.Cleanup(t, s.client.Close)
	return s
}

// call makes a call and compares the status. If the status is 200, it records the counted caller.
func (s *oversizedService) call(t *testing.T, status int, path string, header http.Header) {
	t.Helper()
	s.counted.Store("")
	began := time.Now()
	reply := s.client.Do(t, adaptertest.Call{Method: "GET", Path: path, Header: header})
	s.longest = max(s.longest, time.Since(began))
	s.calls++
	if reply.Status != status {
		t.Errorf("%.40s with %d headers: status %d, want %d", path, len(header), reply.Status, status)
	}
	if status == 200 {
		s.callers[path[:min(20, len(path))]+" "+s.counted.Load().(string)] = true
	}
}

// once makes two calls of one caller: the first must pass, and the second must not.
func (s *oversizedService) once(t *testing.T, path string, header http.Header) {
	t.Helper()
	s.call(t, 200, path, header)
	s.call(t, 429, path, header)
}

// tooManyCookies sends more cookies than net/http reads, 3,000. A rule must take the caller for alice
// where handlers do.
func (s *oversizedService) tooManyCookies(t *testing.T) {
	t.Helper()
	cookies := http.Header{"Cookie": {manyCookies(10_000) + "session=alice"}}
	if s.readsAll {
		s.call(t, 429, "/shop/user", cookies)
		s.once(t, "/shop/anyone", cookies)
		s.call(t, 200, "/shop/anyone", nil)
		return
	}
	s.call(t, 401, "/shop/user", cookies)
	s.once(t, "/shop/anyone", cookies) // nobody, by IP
	s.call(t, 429, "/shop/anyone", nil)
}

func (s *oversizedService) run(t *testing.T) {
	size := 1 << 20
	if !long() {
		size = 1 << 17
	}
	large := strings.Repeat("k", size-1)
	s.once(t, "/shop/key", http.Header{"X-Key": {large + "a"}})
	s.once(t, "/shop/key", http.Header{"X-Key": {large + "b"}})
	s.once(t, "/shop/key", http.Header{"X-Key": {large}})
	s.call(t, 429, "/shop/key", http.Header{"X-Key": {large}, "X-Other": {large}})

	s.once(t, "/shop/user", http.Header{"Cookie": {"session=" + large}})
	s.once(t, "/shop/user", http.Header{"Cookie": {"session=" + large + "a"}})
	s.once(t, "/shop/user", http.Header{"Cookie": {manyCookies(2000) + "session=alice"}})
	s.call(t, 429, "/shop/user", http.Header{"Cookie": {"session=alice; " + manyCookies(2000) + "session=bob"}})
	s.tooManyCookies(t)

	s.once(t, "/shop/hops", http.Header{"X-Forwarded-For": {strings.Repeat("1.1.1.1, ", 1000) + "203.0.113.1"}})
	s.call(t, 429, "/shop/hops", http.Header{"X-Forwarded-For": append(hopLines(1000), "203.0.113.1")})
	s.call(t, 429, "/shop/hops", http.Header{"X-Forwarded-For": {"203.0.113.1" + strings.Repeat(", 127.0.0.9", 1000)}})
	s.once(t, "/shop/hops", http.Header{"X-Forwarded-For": {strings.Repeat(",", size)}}) // nonsense: the peer itself
	s.call(t, 429, "/shop/hops", http.Header{"X-Forwarded-For": {strings.Repeat("9", size)}})
	s.call(t, 429, "/shop/hops", http.Header{"X-Forwarded-For": {strings.Repeat(`"`, size)}})
	if s.rpc {
		return
	}
	s.once(t, "/item/"+strings.Repeat("i", size/2), nil)
	s.call(t, 429, "/item/"+strings.Repeat("%7B", size/6), nil)
	s.call(t, 429, "/item/i", nil)
	s.once(t, "/deep/"+strings.Repeat("admin/edit/ab", size/26), nil)
	s.call(t, 429, "/deep/"+strings.Repeat("admin/", size/12)+"edit", nil)
	s.call(t, 429, "/deep/"+strings.Repeat("edit/a/admin/", size/26)+"bc", nil)
	s.call(t, 429, "/deep/"+strings.Repeat("a", size/2), nil)
}

func manyCookies(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "c%d=%d; ", i, i)
	}
	return all.String()
}

func hopLines(n int) (lines []string) {
	for range n {
		lines = append(lines, "1.1.1.1")
	}
	return lines
}

// wantShortKeys checks that Redis has one short key for each caller.
func (s *oversizedService) wantShortKeys(t *testing.T, server *redistest.Server) {
	t.Helper()
	keys, err := server.Client(t).Keys(t.Context(), s.prefix+":*").Result()
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == s.prefix+":{%mark0}:mk1" })
	if err != nil || len(keys) != len(s.callers) {
		t.Errorf("Redis has %d keys, want one for each of %d callers: %v", len(keys), len(s.callers), err)
	}
	for _, key := range keys {
		if len(key) > 200 {
			t.Errorf("there is the key %q", key)
		}
	}
}

// httpClient speaks HTTP/1.1.
type httpClient struct{ *http.Transport }

func connectHTTP(dial adaptertest.Dial) adaptertest.Client {
	return httpClient{&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}}
}

// Do implements adaptertest.Client.
func (c httpClient) Do(t testing.TB, call adaptertest.Call) adaptertest.Reply {
	t.Helper()
	target, err := url.Parse("http://service.test" + call.Path)
	if err != nil {
		t.Fatal(err)
	}
	if call.Header == nil {
		call.Header = make(http.Header)
	}
	request := (&http.Request{Method: call.Method, URL: target, Header: call.Header}).WithContext(call.Until())
	response, err := c.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
	_ = response.Body.Close()
	return adaptertest.Reply{Status: response.StatusCode, Header: response.Header}
}

// Close implements adaptertest.Client.
func (c httpClient) Close() { c.CloseIdleConnections() }
