// Package examples_test runs the examples as their users do: as processes, configured by their
// environment. All HTTP frameworks must do the same.
package examples_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	asAlice     = "Authorization: Bearer alice-token"
	asBob       = "Authorization: Bearer bob-token"
	withCookie  = "Cookie: theme=dark; session=alice-session"
	withForgery = "Authorization: Bearer alice-tokem"
)

// Regular expressions for headers.
const (
	isAPI     = `^"api";r=\d+;t=[12]$`
	isProblem = `^application/problem\+json$`
	isSoon    = `^[1-9]\d?$`
)

// step is a number of calls that all get the same answer. Headers and body are regular expressions;
// a header's is "" when it must be missing.
type step struct {
	call   string
	lines  []string
	times  int
	status int
	header map[string]string
	body   string
}

// contract lists the steps that every HTTP example must pass.
var contract = []step{
	{call: "GET /healthz", times: 3, status: 200, body: `^healthy\nlimits are counted\n$`, header: map[string]string{"RateLimit": ""}},
	{call: "GET /", times: 1, status: 200, body: `^hello\n$`, header: map[string]string{
		"RateLimit": isAPI, "RateLimit-Policy": `^"api";q=100;w=1$`, "Retry-After": "",
	}},
	{call: "HEAD /", times: 1, status: 200, body: `^$`, header: map[string]string{"RateLimit": isAPI}},
	{call: "GET /nowhere", times: 1, status: 404, header: map[string]string{"RateLimit": isAPI}},
	{call: "GET /reply", times: 1, status: 405, header: map[string]string{"RateLimit": isAPI}},

	// Unknown callers are told to log in, and nothing is charged for them.
	{call: "POST /reply", times: 6, status: 401, body: `"status":401`, header: map[string]string{
		"WWW-Authenticate": `^Bearer$`, "Content-Type": isProblem, "RateLimit": isAPI, "Retry-After": "",
	}},
	{call: "POST /reply", lines: []string{withForgery}, times: 1, status: 401, header: map[string]string{"WWW-Authenticate": `^Bearer$`}},
	// The token and the cookie are of the same user, alice.
	{call: "POST /reply", lines: []string{asAlice}, times: 3, status: 200, body: `^alice has replied\n$`, header: map[string]string{
		"RateLimit-Policy": `, "POST /reply";q=5;w=60$`,
	}},
	{call: "POST /reply", lines: []string{withCookie}, times: 2, status: 200, body: `^alice has replied\n$`},
	{call: "POST /reply", lines: []string{asAlice}, times: 1, status: 429, body: `"violated-policies":\["POST /reply"\]`, header: map[string]string{
		"Retry-After": isSoon, "RateLimit": `, "POST /reply";r=0;t=[1-9]\d?$`, "Content-Type": isProblem, "Cache-Control": `^no-store$`,
	}},
	{call: "POST /reply", lines: []string{withCookie}, times: 1, status: 429, header: map[string]string{"Retry-After": isSoon}},
	{call: "POST /reply", lines: []string{asBob}, times: 1, status: 200, body: `^bob has replied\n$`},

	{call: "GET /limit/anything", times: 10, status: 200, header: map[string]string{"RateLimit-Policy": `^"api";q=100;w=1, "/limit/.*";q=10;w=10$`}},
	{call: "GET /limit/anything", times: 1, status: 429, body: `"violated-policies":\["/limit/`, header: map[string]string{"Retry-After": isSoon}},
	{call: "GET /limit/nothing", times: 1, status: 429, header: map[string]string{"Retry-After": isSoon}},
	{call: "GET /limit/free/anything", times: 11, status: 200, header: map[string]string{"RateLimit": isAPI}},

	// All ids are one route, and a HEAD counts as a GET.
	{call: "GET /users/1", times: 1, status: 200, header: map[string]string{"RateLimit": `, "GET /users/.*";r=2;t=`}},
	{call: "GET /users/2", times: 1, status: 200},
	{call: "HEAD /users/3", times: 1, status: 200, body: `^$`, header: map[string]string{"RateLimit": `, "GET /users/.*";r=0;t=`}},
	{call: "HEAD /users/4", times: 1, status: 429, body: `^$`, header: map[string]string{"Retry-After": isSoon}},
	{call: "GET /users/1", times: 1, status: 429, header: map[string]string{"Retry-After": isSoon}},

	// Without trusted proxies the header is not believed.
	{call: "GET /fixed", lines: []string{"X-Forwarded-For: 203.0.113.1"}, times: 2, status: 200},
	{call: "GET /fixed", lines: []string{"X-Forwarded-For: 203.0.113.2"}, times: 2, status: 200},
	{call: "GET /fixed", lines: []string{"X-Forwarded-For: 203.0.113.3"}, times: 1, status: 429, header: map[string]string{
		"Retry-After": `^[1-5]$`, "RateLimit": `, "GET /fixed";r=0;t=[1-5]$`,
	}},

	{call: "GET /burst", times: 10, status: 200, header: map[string]string{"RateLimit-Policy": `, "GET /burst";q=10;w=2$`}},
}

func TestContract(t *testing.T) {
	server := redistest.Start(t)
	for i, name := range httpExamples {
		for where, redis := range map[string]string{"in process": "", "on Redis": fmt.Sprintf("redis://%s/%d", server.Addr(), i)} {
			t.Run(name+"/"+where, func(t *testing.T) {
				s := start(t, name, "REDIS_URL="+redis, "OPERATOR_TOKEN=secret")
				for _, step := range contract {
					for i := range step.times {
						step.check(t, i+1, s.call(step.call, step.lines...))
					}
				}
				s.wantRefused("GET /burst")
				s.wantRefused("GET /", "GET /nowhere", "POST /reply", "GET /limit/free/anything") // all routes have one counter
				if got := s.call("GET /healthz"); got.status != http.StatusOK {
					t.Errorf("GET /healthz: status %d", got.status)
				}
				if name != "quickstart" { // its operator's page has a server of its own
					s.ask("GET /operator/refused", "limit_exceeded")
					if got := s.call("GET /console/"); got.status != http.StatusUnauthorized {
						t.Errorf("GET /console/: status %d", got.status)
					}
				}
			})
		}
	}
}

func (s step) check(t *testing.T, nth int, got answer) {
	t.Helper()
	if got.status != s.status {
		t.Errorf("%s %v, call %d: status %d, want %d", s.call, s.lines, nth, got.status, s.status)
	}
	for name, want := range s.header {
		value := strings.Join(got.header.Values(name), ", ")
		if (want == "") != (value == "") || !regexp.MustCompile(want).MatchString(value) {
			t.Errorf("%s %v, call %d: header %s is %q, want %q", s.call, s.lines, nth, name, value, want)
		}
	}
	if !regexp.MustCompile(s.body).MatchString(got.body) {
		t.Errorf("%s %v, call %d: body %q, want %q", s.call, s.lines, nth, got.body, s.body)
	}
}

// wantRefused makes calls, one after the other, until one is refused.
func (s *service) wantRefused(calls ...string) {
	s.t.Helper()
	for i := range 2000 {
		if s.call(calls[i%len(calls)]).status == http.StatusTooManyRequests {
			return
		}
	}
	s.t.Fatalf("%v: never refused", calls)
}

func TestTrustedProxies(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			s := start(t, name, "TRUSTED_PROXIES=10.0.0.0/8, 127.0.0.1/32")
			s.wantFixed(200, 4, "X-Forwarded-For: 203.0.113.1")
			s.wantFixed(429, 1, "X-Forwarded-For: 203.0.113.1")
			// The caller's own entry is left of what the proxy added.
			s.wantFixed(429, 1, "X-Forwarded-For: 203.0.113.9, 203.0.113.1, 10.1.2.3")
			s.wantFixed(200, 4, "X-Forwarded-For: 203.0.113.2")
			s.wantFixed(200, 1) // the proxy itself
		})
		t.Run(name+"/a header of their own", func(t *testing.T) {
			s := start(t, name, "TRUSTED_PROXIES=127.0.0.1", "CLIENT_IP_HEADER=x-real-ip")
			s.wantFixed(200, 4, "X-Real-IP: 203.0.113.1", "X-Forwarded-For: 203.0.113.3")
			s.wantFixed(429, 1, "X-Real-IP: 203.0.113.1", "X-Forwarded-For: 203.0.113.4")
			s.wantFixed(200, 1, "X-Real-IP: 203.0.113.2", "X-Forwarded-For: 203.0.113.3")
		})
	}
}

func TestUnixSocket(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			s := start(t, name, "ADDR=unix:"+socketPath(t), "TRUSTED_PROXIES=unix")
			s.wantFixed(200, 4, "X-Forwarded-For: 203.0.113.1")
			s.wantFixed(429, 1, "X-Forwarded-For: 203.0.113.1")
			s.wantFixed(200, 1, "X-Forwarded-For: 203.0.113.2")
		})
	}
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // t.TempDir is longer than the path of a socket may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "socket")
}

func TestInstancesShareTheirCounts(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			url := "REDIS_URL=redis://" + redistest.Start(t).Addr()
			one, other := start(t, name, url), start(t, name, url)
			one.wantFixed(200, 2)
			other.wantFixed(200, 2)
			one.wantFixed(429, 1)
			other.wantFixed(429, 1)
		})
	}
}

// A service starts and serves while Redis is down, and counts as soon as it is back.
func TestRedisDown(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the client's pool waits for a second until it tries again
			server := redistest.Start(t)
			server.Kill()
			s := start(t, name, "REDIS_URL=redis://"+server.Addr())
			s.wantHealth("not counted: (unreachable|breaker_open)")
			s.wantFixed(200, 6) // FailOpen
			if got := s.call("GET /"); got.header.Get("RateLimit") != "" {
				t.Errorf("RateLimit is %q though nobody counts", got.header.Get("RateLimit"))
			}
			server.Restart()
			s.waitUntilCounted()
			s.wantHealth("counted")
			s.wantFixed(200, 4)
			s.wantFixed(429, 1)
			if err := server.Client(t).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Fatal(err)
			}
			s.wantHealth("not counted: refused_by_redis")
		})
	}
}

// wantHealth fails unless the service is healthy, and says that of its limits.
func (s *service) wantHealth(limits string) {
	s.t.Helper()
	got := s.call("GET /healthz")
	if got.status != http.StatusOK || !regexp.MustCompile("^healthy\nlimits are "+limits+"\n$").MatchString(got.body) {
		s.t.Errorf("GET /healthz: status %d, body %q, want %s", got.status, got.body, limits)
	}
}
