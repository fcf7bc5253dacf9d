package authrequest_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/authrequest"
)

// request is a request of a proxy.
type request struct {
	adapter.View
	header http.Header
}

func (r request) Header(name string) []string { return r.header[name] }

// about returns a request about a call.
func about(method, uri, host string) request {
	return request{header: http.Header{"X-Forwarded-Method": {method}, "X-Forwarded-Uri": {uri}, "X-Forwarded-Host": {host}}}
}

func TestCall(t *testing.T) {
	for _, test := range []struct{ method, uri, host, path, query string }{
		{"GET", "/a?q=1", "service.test", "/a", "1"},
		{"M-SEARCH", "/", "", "/", ""}, // HTTP/1.0 needs no host
		{"OPTIONS", "*", "service.test:8080", "*", ""},
		{"GET", "http://other.test/a/b?q=2&q=3", "service.test", "/a/b", "2"},
		{"GET", "http://other.test", "[2001:db8::1]:80", "/", ""},
		{"GET", "/a%2Fb", "service.test", "/a%2Fb", ""},
		{"GET", "//other.test/a", "service.test", "//other.test/a", ""},
		{"GET", "/a/../b//c;d", "service.test", "/a/../b//c;d", ""},
		{"GET", "/a%0d%0aX", "service.test", "/a%0d%0aX", ""},
		{"GET", "/a?q=%zz", "service.test", "/a", ""},
		{"GET", "/" + strings.Repeat("a", 1<<20), "service.test", "/" + strings.Repeat("a", 1<<20), ""},
	} {
		v, why := authrequest.Call(about(test.method, test.uri, test.host))
		if why != "" || v.Method() != test.method || v.Host() != test.host || v.Path() != test.path || v.Query("q") != test.query {
			t.Errorf("%s %.40q: %q, %.40q of %q, q=%q", test.method, test.uri, v.Method(), v.Path(), v.Host(), v.Query("q"))
		}
		loose := v.(adapter.LooseView)
		if anyCase, anySlash := loose.Loose(); !anyCase || !anySlash || v.Size() != -1 || v.Route() != "" || v.Param("id") != "" || v.(adapter.RoutedView).Routed() {
			t.Errorf("%.40q: the router or the body is known", test.uri)
		}
	}
}

func TestUnreadable(t *testing.T) {
	const method, uri, host = "X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host"
	for _, test := range []struct {
		name   string
		values []string
		want   string
	}{
		{method, nil, "X-Forwarded-Method is missing"},
		{method, []string{"GET", "GET"}, "X-Forwarded-Method is there more than once"},
		{method, []string{""}, "X-Forwarded-Method is not a method"},
		{method, []string{"GET, POST"}, "X-Forwarded-Method is not a method"},
		{method, []string{"GÉT"}, "X-Forwarded-Method is not a method"},
		{method, []string{"GET\r\nX: 1"}, "X-Forwarded-Method is not a method"},
		{uri, nil, "X-Forwarded-Uri is missing"},
		{uri, []string{"/a", "/b"}, "X-Forwarded-Uri is there more than once"},
		{uri, []string{""}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"a"}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"/a, /b"}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"/a#b"}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"/%zz"}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"/a\r\nX: 1"}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"mailto:a"}, "X-Forwarded-Uri is not the target of a request"},
		{uri, []string{"service.test:443"}, "X-Forwarded-Uri is not the target of a request"},
		{host, []string{"a.test", "b.test"}, "X-Forwarded-Host is there more than once"},
		{host, []string{"a.test, b.test"}, "X-Forwarded-Host is not one host"},
	} {
		r := about("GET", "/a", "service.test")
		if r.header[test.name] = test.values; test.values == nil {
			delete(r.header, test.name)
		}
		if _, why := authrequest.Call(r); why != test.want {
			t.Errorf("%s of %q: %q, want %q", test.name, test.values, why, test.want)
		}
	}
}

// nginx leaves the header out if the call has no host.
func TestCallWithoutHost(t *testing.T) {
	r := about("GET", "/a", "")
	delete(r.header, "X-Forwarded-Host")
	if v, why := authrequest.Call(r); why != "" || v.Host() != "" {
		t.Errorf("%q: %v", why, v)
	}
}

// FuzzTarget checks that a target is read as net/http reads it in a request line.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{"/", "*", "/a%2fb?c=%20", "//a/b", "///", "http://a/b", "http://a", "http:a", "/%", "/a;b?c;d", "/\x7f", "a:b", "/é"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if strings.ContainsAny(target, " \r\n\t#") {
			return // which end the target in a request line, or are refused
		}
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		v, why := authrequest.Call(about("GET", target, "a"))
		if err != nil {
			if why == "" {
				t.Errorf("%q is read as %q, not by net/http: %v", target, v.Path(), err)
			}
			return
		}
		path := want.URL.RawPath
		if path == "" {
			path = want.URL.Path
		}
		if path == "" && want.URL.Opaque == "" {
			path = "/"
		}
		if why == "" && (v.Path() != path || v.Query("c") != want.URL.Query().Get("c")) || why != "" && path != "" {
			t.Errorf("%q is read as %q, by net/http as %q (%s)", target, v.Path(), path, why)
		}
	})
}
