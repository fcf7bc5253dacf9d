// Package authrequest reads the requests by which proxies ask whether they may forward a call: those of
// nginx's auth_request, and of forward_auth in Caddy and Traefik.
package authrequest

import (
	"net/url"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// The headers in which the proxy describes the call. A proxy that does not set one of them passes on
// what its client sends, which ordinary clients do not, so such a request is refused.
const (
	methodHeader = "X-Forwarded-Method"
	uriHeader    = "X-Forwarded-Uri"
	hostHeader   = "X-Forwarded-Host"
)

// Call returns the call that a request is about, or why it cannot be read. The request is believed, so
// its peer must be trusted.
func Call(request adapter.View) (call adapter.View, why string) {
	c := &view{View: request}
	method, why := single(request, methodHeader)
	if why == "" {
		c.method, why = method, checkMethod(method)
	}
	uri := ""
	if why == "" {
		uri, why = single(request, uriHeader)
	}
	if why == "" {
		c.target, why = parseTarget(uri)
	}
	if why == "" {
		c.host, why = single(request, hostHeader)
	}
	if why == "" && strings.ContainsAny(c.host, ", \t") {
		why = hostHeader + " is not one host"
	}
	return c, why
}

// single returns the value of a header that must be there once.
func single(request adapter.View, name string) (value, why string) {
	switch lines := request.Header(name); len(lines) {
	case 0:
		return "", name + " is missing"
	case 1:
		return lines[0], ""
	default:
		return "", name + " is there more than once"
	}
}

// checkMethod returns why a text is not a method of HTTP, or "". Without a method, a call would be taken
// for one of gRPC.
func checkMethod(method string) (why string) {
	if method == "" || strings.ContainsFunc(method, isNotTokenChar) {
		return methodHeader + " is not a method"
	}
	return ""
}

// isNotTokenChar reports whether a character cannot be part of a token (RFC 9110 section 5.6.2).
func isNotTokenChar(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// parseTarget reads the target of a request as net/http does: a path with a query, a whole URI, or "*".
// A fragment, which a target never has, is wrong: some routers behind a proxy cut it off, others do not.
func parseTarget(uri string) (target *url.URL, why string) {
	const wrong = uriHeader + " is not the target of a request"
	target, err := url.ParseRequestURI(uri)
	if err != nil || target.Opaque != "" || strings.ContainsAny(uri, " #") {
		return nil, wrong
	}
	if target.Path == "" { // http://service.test
		target.Path = "/"
	}
	return target, ""
}
