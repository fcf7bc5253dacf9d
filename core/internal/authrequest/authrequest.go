// Package authrequest reads the requests by which proxies ask whether they may forward a call: those of
// nginx's auth_request, and of forward_auth in Caddy and Traefik.
package authrequest

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// The headers in which the proxy describes the call. A proxy that does not set one of them passes on
// the client's own. Ordinary clients send none, so a request without the first two is refused.
const (
	methodHeader = "X-Forwarded-Method"
	uriHeader    = "X-Forwarded-Uri"
	hostHeader   = "X-Forwarded-Host"
)

// Call returns the call that a request is about, or why it cannot be read. The request is believed, so
// its peer must be trusted.
func Call(request adapter.View) (call adapter.View, why string) {
	method, wrongMethod := methodIn(request)
	target, wrongTarget := targetIn(request)
	host, wrongHost := hostIn(request)
	if why = cmp.Or(wrongMethod, wrongTarget, wrongHost); why != "" {
		return nil, why
	}
	return &view{request, method, host, target}, ""
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

// methodIn returns the method of the call. Without one, the call would be taken for one of gRPC.
func methodIn(request adapter.View) (method, why string) {
	method, why = single(request, methodHeader)
	if why == "" && (method == "" || strings.ContainsFunc(method, isNotTokenChar)) {
		why = methodHeader + " is not a method"
	}
	return method, why
}

// isNotTokenChar reports whether a character cannot be part of a token (RFC 9110 section 5.6.2).
func isNotTokenChar(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// targetIn returns the target of the call, read as net/http does: a path with a query, a whole URI, or
// "*". A fragment, which a target never has, is wrong: some routers behind a proxy cut it off, others do
// not.
func targetIn(request adapter.View) (target *url.URL, why string) {
	uri, why := single(request, uriHeader)
	if why != "" {
		return nil, why
	}
	target, err := url.ParseRequestURI(uri)
	if err != nil || target.Opaque != "" || strings.ContainsAny(uri, " #") {
		return nil, uriHeader + " is not the target of a request"
	}
	if target.Path == "" { // http://service.test
		target.Path = "/"
	}
	return target, ""
}

// hostIn returns the host of the call. It may be empty, as in HTTP/1.0, where nginx leaves the
// header out.
func hostIn(request adapter.View) (host, why string) {
	if len(request.Header(hostHeader)) == 0 {
		return "", ""
	}
	host, why = single(request, hostHeader)
	if strings.ContainsAny(host, ", \t") {
		why = hostHeader + " is not one host"
	}
	return host, why
}
