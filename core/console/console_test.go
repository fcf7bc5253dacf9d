package console_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// allPages are the paths of the pages.
var allPages = []string{"", "subject?subject=user:alice", "audit"}

// There is no page without a limiter and an authorizer.
func TestNewNeedsAnAuthorizer(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	if page, err := console.New(limiter, console.Options{}); err == nil || page != nil || !strings.Contains(err.Error(), "Authorize") {
		t.Errorf("without an authorizer: %v, %v", page, err)
	}
	if _, err := console.New(nil, console.Options{Authorize: byHeader}); err == nil {
		t.Error("a nil limiter has a page")
	}
	wrong := console.Options{Authorize: byHeader, ClientIP: core.ClientIP{TrustedProxies: []string{"nobody"}}}
	if _, err := console.New(limiter, wrong); err == nil {
		t.Error("a wrong ClientIP is no error")
	}
}

// Strangers see nothing, whatever they ask for.
func TestStrangersSeeNothing(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	paths := append([]string{"api/now", "style.css", "live", "ban", "api/ban", "x.y", "api/x"}, allPages...)
	for role, status := range map[string]int{"": http.StatusForbidden, "admin": http.StatusForbidden, "unknown": http.StatusServiceUnavailable} {
		stranger := as(t, role, newPage(t, limiter, console.Options{}))
		for _, path := range paths {
			got := stranger.get(path)
			if got.StatusCode != status || len(got.Cookies()) > 0 || len(got.body) > 100 {
				t.Errorf("role %q gets status %d, %v of %q: %s", role, got.StatusCode, got.Cookies(), path, got.body)
			}
		}
	}
	got := as(t, "", newPage(t, limiter, console.Options{Challenge: `Basic realm="limits"`})).get("")
	if got.StatusCode != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != `Basic realm="limits"` {
		t.Errorf("with a challenge: status %d, %v", got.StatusCode, got.Header)
	}
}

// A stranger is logged by the address that ClientIP finds, not by that of the proxy.
func TestStrangersAreLoggedByAddress(t *testing.T) {
	var log strings.Builder
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{
		ClientIP: core.ClientIP{TrustedProxies: []string{"192.0.2.1"}}, Authorize: byHeader,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	r := httptest.NewRequest("GET", "/", nil) // from 192.0.2.1
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	page.ServeHTTP(httptest.NewRecorder(), r)
	if !strings.Contains(log.String(), "not authorized") || !strings.Contains(log.String(), "client=203.0.113.7") || strings.Contains(log.String(), "192.0.2.1") {
		t.Error(log.String())
	}
}

// Another site can link to the page, and load nothing of it. Its attempts do not count as a
// stranger's requests.
func TestOtherSitesMayOnlyLink(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	for _, c := range []struct {
		site, mode, kind string
		status           int
	}{
		{"cross-site", "navigate", "document", 200}, {"same-site", "navigate", "document", 200}, {"same-origin", "cors", "empty", 200},
		{"cross-site", "navigate", "iframe", 403}, {"same-site", "navigate", "object", 403},
		{"cross-site", "no-cors", "image", 403}, {"same-site", "cors", "empty", 403}, {"cross-site", "no-cors", "document", 403},
	} {
		for range 35 {
			r := httptest.NewRequest(http.MethodGet, "/limits/", nil)
			r.Header.Set("Sec-Fetch-Site", c.site)
			r.Header.Set("Sec-Fetch-Mode", c.mode)
			r.Header.Set("Sec-Fetch-Dest", c.kind)
			if got := as(t, "viewer", page).do(r); got.StatusCode != c.status {
				t.Fatalf("%+v: status %d: %s", c, got.StatusCode, got.body)
			}
		}
	}
}

// All replies have the headers that keep a browser from running or showing anything else.
func TestHeaders(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	for _, path := range append([]string{"api/now", "api/nowhere", "style.css", "nowhere", "ban", "?token=x"}, allPages...) {
		for _, role := range []string{"", "operator"} {
			header := as(t, role, page).get(path).Header
			policy := header.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
				if !strings.Contains(policy, part) {
					t.Errorf("%q as %q: the policy %q lacks %q", path, role, policy, part)
				}
			}
			if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
				t.Errorf("%q as %q: the policy is %q", path, role, policy)
			}
			for name, want := range map[string]string{
				"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
				"Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := header.Get(name); got != want {
					t.Errorf("%q as %q: %s is %q, want %q", path, role, name, got, want)
				}
			}
		}
	}
}

// The pages have no inline script or style, and load nothing from elsewhere.
func TestPagesLoadOnlyTheirOwnFiles(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		for _, path := range allPages {
			body := operator.wantPage(path)
			for _, bad := range []string{"style=", "<style", "onclick", "onload", "javascript:", "http://", "https://", `="//`} {
				if strings.Contains(body, bad) {
					t.Errorf("%q has %s:\n%s", path, bad, body)
				}
			}
			if strings.Count(body, "<script") != strings.Count(body, `<script src="script.js"></script>`) {
				t.Errorf("%q has a script of its own", path)
			}
		}
		for file, kind := range map[string]string{"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"} {
			if got := operator.get(file); got.StatusCode != http.StatusOK || !strings.HasPrefix(got.Header.Get("Content-Type"), kind) {
				t.Errorf("%s: status %d, %s", file, got.StatusCode, got.Header.Get("Content-Type"))
			}
		}
	})
}

// A token in a URL is refused, before it is looked at.
func TestTokensInURLsAreRefused(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{Authorize: func(r *http.Request) (console.Identity, error) {
		t.Error("the authorizer was called")
		return console.Identity{Role: console.Operator}, nil
	}})
	for _, path := range []string{"?token=x", "audit?before=&token=", "api/now?access_token=x", "ban?token=x"} {
		if got := as(t, "operator", page).get(path); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", path, got.StatusCode)
		}
	}
}

// Pages repeat their parameters, so these are bounded.
func TestLongParametersAreRefused(t *testing.T) {
	operator := as(t, "operator", newPage(t, newLimiter(t, core.Options{}), console.Options{}))
	for length, status := range map[int]int{16<<10 - 200: http.StatusOK, 16 << 10: http.StatusRequestURITooLong} {
		if got := operator.get("subject?subject=" + strings.Repeat("x", length)); got.StatusCode != status {
			t.Errorf("%d bytes: status %d, want %d", length, got.StatusCode, status)
		}
	}
}

// A HEAD gets what a GET gets, without the body, and other methods are refused.
func TestMethods(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"HEAD", "", 200, ""}, {"HEAD", "api/audit", 200, ""}, {"HEAD", "style.css", 200, ""}, {"HEAD", "live", 200, ""},
		{"POST", "", 405, "GET, HEAD"}, {"PUT", "audit", 405, "GET, HEAD"}, {"OPTIONS", "api/now", 405, "GET, HEAD"},
		{"POST", "api/unbann", 404, ""}, {"POST", "unbann", 404, ""},
		{"GET", "ban", 405, "POST"}, {"DELETE", "api/ban", 405, "POST"}, {"HEAD", "unban", 405, "POST"},
	} {
		got := as(t, "operator", page).do(httptest.NewRequest(c.method, "/limits/"+c.path, nil))
		if got.StatusCode != c.status || got.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: status %d, Allow %q", c.method, c.path, got.StatusCode, got.Header.Get("Allow"))
		}
		if c.method == "HEAD" && got.body != "" {
			t.Errorf("%s %s has the body %q", c.method, c.path, got.body)
		}
	}
}

// A request for a page that does not exist, or that cannot be read, is an error of the caller, with
// the reason.
func TestBadRequests(t *testing.T) {
	operator := as(t, "operator", newPage(t, newLimiter(t, core.Options{}), console.Options{}))
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"audit?before=yesterday":                    {400, "must be the ID of an entry"},
		"explain?method=GET&path=reply":             {400, "must start with a slash"},
		"explain?path=/x&address=203.0.113":         {400, "must be like 203.0.113.7, or 203.0.113.7:1234"},
		"api/audit?before=yesterday":                {400, "must be the ID of an entry"},
		"subject?subject=" + url.QueryEscape(`"\x`): {400, "must be a string literal of Go"},
		"audit?before=%zz":                          {400, "cannot be read"},
		"no.such":                                   {404, "no such page"},
		"api/nothing":                               {404, "no such page"},
	} {
		got := operator.get(path)
		if got.StatusCode != want.status || !strings.Contains(got.body, want.says) {
			t.Errorf("%s: status %d: %s", path, got.StatusCode, got.body)
		}
		if isJSON := got.Header.Get("Content-Type") == "application/json"; isJSON != strings.HasPrefix(path, "api/") {
			t.Errorf("%s: the reply is of the type %s", path, got.Header.Get("Content-Type"))
		}
	}
}

func TestRoles(t *testing.T) {
	for role, want := range map[console.Role]string{0: "nobody", console.Viewer: "viewer", console.Operator: "operator", 7: "nobody"} {
		if got := role.String(); got != want {
			t.Errorf("Role(%d) is %q, want %q", role, got, want)
		}
	}
}
