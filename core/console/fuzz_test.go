package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// Whatever is sent, the page answers, shows it as text only, and lets nobody but an operator with
// the token act.
func FuzzHandler(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	about := "rule=api&subject=user:bob&note=n&for=1h&kind=limits&limits=5/h"
	f.Add("viewer", "GET", "/limits/", "", "", "", "", "")
	f.Add("viewer", "GET", "/limits/subject", "subject=<img src=x onerror=alert(1)>", "", "", "", "")
	f.Add("viewer", "GET", "/limits/subject", `subject="\x00\xff"`, "", "", "", "")
	f.Add("viewer", "GET", "/limits/offenders", "rule=%22%3Cb&span=10m", "", "", "", "")
	f.Add("viewer", "GET", "/limits/bans", "rule=api&after=%ff", "", "", "", "")
	f.Add("viewer", "GET", "/limits/explain", "path=/x&method=GET&address=1.2.3.4&header=a:b", "", "", "", "")
	f.Add("viewer", "GET", "/limits/audit", "before=1-1", "", "", "", "")
	f.Add("viewer", "GET", "/limits/api/audit", "before=1-1;", "", "", "", "")
	f.Add("viewer", "GET", "/limits/api/rules", "done=ban", "", "", "", "")
	f.Add("", "GET", "//x", "token=y", "", "", "", "")
	f.Add("viewer", "POST", "/limits/ban", "", about, form, "same-origin", "")
	f.Add("operator", "POST", "/limits/override", "", about, form, "same-origin", "")
	f.Add("operator", "POST", "/limits/reset", "", about, form, "", "http://example.com")
	f.Add("viewer", "POST", "/limits/api/unban", "", `{"rule":"api","subject":"s","note":"n","max":1e400}`, "application/json", "", "null")

	limiter := newLimiter(f, core.Options{MaxKeys: 1000})
	attach(f, limiter, steered)
	page := newPage(f, limiter, console.Options{RedactSubjects: true, Authorize: func(r *http.Request) (console.Identity, error) {
		who, _ := byHeader(r)
		return who, nil
	}, ClientIP: core.ClientIP{TrustedProxies: []string{"192.0.2.1"}}})
	f.Fuzz(func(t *testing.T, role, method, path, query, body, kind, site, origin string) {
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, RequestURI: path + "?" + query, Host: "example.com",
			Header: http.Header{"Role": {role}, "Content-Type": {kind}, "X-Forwarded-For": {origin}}, RemoteAddr: "192.0.2.1:1",
		}
		made := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Body = made.Body
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if strings.HasSuffix(path, "/live") || path == "live" {
			return // which lasts a minute
		}
		before := audit(t, limiter)
		got := as(t, "", page).do(r)
		check(t, got)
		for _, e := range audit(t, limiter)[min(len(before), len(audit(t, limiter))):] {
			if !strings.HasPrefix(e.After, "not done: ") && (role != "operator" || kind == form) {
				t.Errorf("%q has acted: %+v", role, e)
			}
		}
	})
}

// check checks a reply to whatever was sent.
func check(t *testing.T, got answer) {
	t.Helper()
	if got.StatusCode >= 500 && got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", got.StatusCode, got.body)
	}
	if !strings.Contains(got.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || !strings.Contains(got.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("the headers are %v", got.Header)
	}
	if to := got.Header.Get("Location"); to != "" && !strings.HasPrefix(to, "./") && !strings.HasPrefix(to, "subject?") {
		t.Errorf("the reply leads to %q", to)
	}
	if strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") && strings.Contains(got.body, "<img") {
		t.Errorf("the page has an element that was sent: %s", got.body)
	}
}
