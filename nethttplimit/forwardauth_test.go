package nethttplimit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// newAuth serves ForwardAuth for a proxy on this machine, and returns its address.
func newAuth(t *testing.T, rule core.Rule, change func(*core.Options)) (address string) {
	t.Helper()
	options := core.Options{Logger: slog.New(slog.DiscardHandler), ClientIP: core.ClientIP{TrustedProxies: []string{"127.0.0.1"}}}
	if change != nil {
		change(&options)
	}
	limiter := limitertest.New(t, options)
	server := httptest.NewServer(nethttplimit.ForwardAuth(limiter.MustCheck(rule)))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// askOver sends a request, and returns the reply.
func askOver(t *testing.T, address, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.80q: %v", request, err)
	}
	body, _ := io.ReadAll(reply.Body)
	reply.Body = io.NopCloser(strings.NewReader(string(body)))
	return reply
}

// aboutCall describes a call in the headers of a proxy.
const aboutCall = "X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /a?b\r\nX-Forwarded-Host: service.test\r\nX-Forwarded-For: 203.0.113.7\r\n"

// Each request gets the status that a proxy understands, with the headers of the limit.
func TestForwardAuth(t *testing.T) {
	address := newAuth(t, core.Rule{Name: "posts", Seconds: 600, MaxCount: 2, Methods: []string{"POST"}}, nil)
	request := "GET /auth HTTP/1.1\r\nHost: auth.test\r\n"
	for i, want := range []struct {
		status           int
		left, retryAfter bool
	}{{200, true, false}, {200, true, false}, {429, true, true}} {
		reply := askOver(t, address, request+aboutCall+"\r\n")
		left, retryAfter := reply.Header.Get("Ratelimit") != "", reply.Header.Get("Retry-After") != ""
		if reply.StatusCode != want.status || left != want.left || retryAfter != want.retryAfter || reply.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("request %d: %d, %v, want %+v", i, reply.StatusCode, reply.Header, want)
		}
	}
	for request, status := range map[string]int{
		"GET / HTTP/1.0\r\n" + aboutCall + "\r\n":                                                                       429,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n" + aboutCall + "\r\nhello":            429,
		"GET / HTTP/1.1\r\nHost: a\r\n" + strings.ReplaceAll(aboutCall, "POST", "GET") + "\r\n":                         200,
		"GET / HTTP/1.1\r\nHost: a\r\n" + strings.ReplaceAll(aboutCall, "POST", "") + "\r\n":                            403,
		"GET / HTTP/1.1\r\nHost: a\r\n" + aboutCall + "X-Forwarded-Uri: /b\r\n\r\n":                                     403,
		"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n":                                             403,
		"HEAD /?" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + aboutCall + "\r\n":  429,
		"GET / HTTP/1.1\r\nHost: a\r\n" + strings.ReplaceAll(aboutCall, "/a", "/"+strings.Repeat("a", 64<<10)) + "\r\n": 429,
	} {
		if reply := askOver(t, address, request); reply.StatusCode != status {
			t.Errorf("%.60q: %d, want %d", request, reply.StatusCode, status)
		}
	}
}

// Only a trusted proxy is believed.
func TestForwardAuthOfStrangers(t *testing.T) {
	address := newAuth(t, core.Rule{Name: "n", Seconds: 600}, func(o *core.Options) { o.ClientIP.TrustedProxies = []string{"10.0.0.1"} })
	if reply := askOver(t, address, "GET / HTTP/1.1\r\nHost: a\r\n"+aboutCall+"\r\n"); reply.StatusCode != 403 || reply.Header.Get("Ratelimit") != "" {
		t.Errorf("%d, %v", reply.StatusCode, reply.Header)
	}
}

// A call without a login, and one whose caller cannot be identified, get their own statuses.
func TestForwardAuthIdentifies(t *testing.T) {
	address := newAuth(t, core.Rule{Name: "n", Seconds: 600, NeedLogin: true}, func(o *core.Options) {
		o.Identify = core.BearerToken(func(_ context.Context, token string) (string, error) {
			if token == "broken" {
				return "", errors.New("no database")
			}
			return map[string]string{"alices": "alice"}[token], nil
		})
	})
	for token, want := range map[string]int{"alices": 200, "nobodys": 401, "broken": 503} {
		reply := askOver(t, address, "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+token+"\r\n"+aboutCall+"\r\n")
		if login := reply.Header.Get("Www-Authenticate") != ""; reply.StatusCode != want || login != (want == 401) {
			t.Errorf("%s: %d, %v", token, reply.StatusCode, reply.Header)
		}
	}
}

func TestForwardAuthPanicsClearly(t *testing.T) {
	limiter := limitertest.New(t, core.Options{Logger: slog.New(slog.DiscardHandler)})
	defer func() {
		if err, ok := recover().(*core.RuleError); !ok || err.Field != "Options.ClientIP.TrustedProxies" {
			t.Errorf("panicked with %v", err)
		}
	}()
	nethttplimit.ForwardAuth(limiter.MustCheck(core.Rule{Name: "n", Seconds: 600}))
}
