package nethttplimit_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// newAuth serves ForwardAuth for a proxy on this machine, and returns its address.
func newAuth(t *testing.T, rule core.Rule) (address string) {
	t.Helper()
	limiter := limitertest.New(t, core.Options{ClientIP: core.ClientIP{TrustedProxies: []string{"127.0.0.1"}}})
	server := httptest.NewServer(nethttplimit.ForwardAuth(limiter.MustCheck(rule)))
	bounded.Cleanup(t, server.Close)
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
	address := newAuth(t, core.Rule{Name: "posts", Seconds: 600, MaxCount: 2, Methods: []string{"POST"}})
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

func TestForwardAuthPanicsClearly(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	defer func() {
		if err, ok := recover().(*core.RuleError); !ok || err.Field != "Options.ClientIP.TrustedProxies" {
			t.Errorf("panicked with %v", err)
		}
	}()
	nethttplimit.ForwardAuth(limiter.MustCheck(core.Rule{Name: "n", Seconds: 600}))
}
