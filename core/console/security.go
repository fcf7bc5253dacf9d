package console

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
)

// secure sets the headers that every reply has. The policy allows no inline script and no inline
// style. The Referrer-Policy is same-origin. With no-referrer, browsers would send "Origin: null"
// with the page's own forms, and over plain HTTP nothing else would say where a form comes from.
func secure(header http.Header, r *http.Request) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if r.TLS != nil || r.Header.Get("Sec-Fetch-Site") != "" { // over plain HTTP, browsers complain about it
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
}

// isForeign reports whether another site made a browser send a request, except by a link to the
// page. Browsers say so in Sec-Fetch-Site or, over plain HTTP, in Origin. For requests without
// either header, see isBare.
func isForeign(r *http.Request) bool {
	site := r.Header.Values("Sec-Fetch-Site")
	switch {
	case len(site) == 0:
		return !sameOrigin(r, true)
	case len(site) == 1 && (site[0] == "none" || site[0] == "same-origin"):
		return false
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	default:
		return true
	}
}

const (
	tokenField  = "token"
	tokenCookie = "accesslimit-console"
	tokenBytes  = 32
)

// hasTokenInURL reports whether a URL has a token, which would end up in logs.
func hasTokenInURL(query url.Values) bool { return query.Has(tokenField) || query.Has("access_token") }

// token returns the token that the page's forms must send. If the browser has no such cookie yet,
// it also sets the cookie that the token is compared with. The token is the cookie's value, so that
// any process of a service behind a balancer can check it. Another origin can neither read nor send
// the cookie.
func token(w http.ResponseWriter, r *http.Request) string {
	if known := cookies(r); len(known) > 0 {
		return known[0]
	}
	fresh := base64.RawURLEncoding.EncodeToString(random(tokenBytes))
	http.SetCookie(w, &http.Cookie{ // for the folder of the page, and for this session
		Name: tokenCookie, Value: fresh, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
	return fresh
}

// cookies returns the values of the cookies that the page may have set. There may be several: a
// sibling domain can add its own, even for a single act, and must not keep operators from acting.
func cookies(r *http.Request) (values []string) {
	for _, sent := range r.CookiesNamed(tokenCookie) {
		if value, err := base64.RawURLEncoding.DecodeString(sent.Value); err == nil && len(value) == tokenBytes {
			values = append(values, sent.Value)
		}
	}
	return values
}

// hasToken reports whether a form sent the token of one of the browser's cookies.
func hasToken(r *http.Request, sent string) bool {
	return slices.ContainsFunc(cookies(r), func(known string) bool {
		return subtle.ConstantTimeCompare([]byte(known), []byte(sent)) == 1
	})
}

// isFromPage reports whether a browser followed a link, a form or a redirect of the page itself. Over
// plain HTTP, only Referer says so.
func isFromPage(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return sameOrigin(r, false)
	}
	from, err := url.Parse(r.Referer())
	return err == nil && from.Host != "" && from.Host == r.Host
}

// sameOrigin reports whether a request comes from the page itself. Browsers say so in
// Sec-Fetch-Site or, over plain HTTP, in Origin. If a request has neither, it does not come from a
// browser, and sameOrigin returns otherwise.
func sameOrigin(r *http.Request, otherwise bool) bool {
	if site := r.Header.Values("Sec-Fetch-Site"); len(site) > 0 {
		return len(site) == 1 && site[0] == "same-origin"
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return otherwise
	}
	origin, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && origin.Host != "" && origin.Host == r.Host
}
