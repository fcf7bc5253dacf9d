package console_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
)

// Viewers, operators without a name, and everybody on a read-only page are refused, and that is in
// the audit. The pages do not offer them acts.
func TestForbiddenActs(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		attach(t, limiter, steered)
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		operator.token()
		nameless := func(*http.Request) (console.Identity, error) { return console.Identity{Role: console.Operator}, nil }
		for _, c := range []struct {
			role, author string
			says         string
			with         console.Options
		}{
			{"viewer", "alice", "Only operators may act", console.Options{}},
			{"operator", "alice", "read-only", console.Options{ReadOnly: true}},
			{"operator", "", "Only operators with a name may act", console.Options{Authorize: nameless}},
		} {
			page := newPage(t, limiter, c.with)
			somebody := as(t, c.role, page)
			if html := somebody.wantPage("subject?subject=user:bob"); strings.Contains(html, `method="post"`) || len(somebody.cookies) > 0 {
				t.Errorf("%s: the page offers to act", c.says)
			}
			somebody.cookies = operator.cookies // of somebody who may
			got := somebody.send("ban", http.StatusForbidden, fields(
				"rule", "api", "subject", "user:bob", "for", "1h", "note", "mine", "token", operator.token()))
			last := audit(t, limiter)
			if want := (operate.AuditEntry{Act: "ban", Rule: "api", Subject: "user:bob", Author: c.author, Note: "mine"}); !sameAct(last[len(last)-1], want) {
				t.Errorf("the audit ends with %+v", last[len(last)-1])
			}
			if !strings.Contains(got.body, c.says) || !strings.Contains(last[len(last)-1].After, c.says) {
				t.Errorf("the page says %q, and the audit %q, want %q", got.body, last[len(last)-1].After, c.says)
			}
		}
		if changed, err := operate.New(limiter).Unban(t.Context(), "api", "user:bob"); err != nil || changed {
			t.Errorf("the subject was banned: %v, %v", changed, err)
		}
	})
}

// Forbidden acts cannot push everything else out of the audit, not even in some hours. Those of one
// person do not hide those of another.
func TestForbiddenActsInTheAuditAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, core.Options{})
		viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
		for range 40 {
			viewer.send("ban", http.StatusForbidden, fields("token", "none"))
			time.Sleep(time.Minute)
		}
		if n := len(audit(t, limiter)); n != 30 {
			t.Errorf("the audit has %d entries, want 30", n)
		}
		bob := viewer.form("ban", fields("token", "none"))
		bob.Header.Set("Role", "viewer")
		bob.Header.Set("Name", "bob")
		viewer.role = "" // so that the name stays
		viewer.do(bob)
		if entries := audit(t, limiter); entries[len(entries)-1].Author != "bob" {
			t.Errorf("the audit ends with %+v", entries[len(entries)-1])
		}
	})
}

// A sibling domain can add cookies of the page's name, which browsers may send first, or to a single
// act only. Operators can still act.
func TestCookiesOfSiblings(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered)
	page := newPage(t, limiter, console.Options{})
	for _, planted := range []string{"x", strings.Repeat("A", 43)} {
		for when, early := range map[string]bool{"before the page is seen": true, "before the act": false} {
			operator := as(t, "operator", page)
			plant := func() {
				operator.cookies = append([]*http.Cookie{{Name: "accesslimit-console", Value: planted}}, operator.cookies...)
			}
			if early {
				plant()
			}
			form := operator.form("ban", fields("rule", "api", "subject", "user:bob", "for", "1h", "note", "ticket 1"))
			if !early {
				plant()
			}
			if got := operator.do(form); got.StatusCode != http.StatusSeeOther {
				t.Errorf("with the cookie %q, set %s: status %d: %s", planted, when, got.StatusCode, got.body)
			}
		}
	}
}

// A form of another site, or without the token of the browser's cookie, does nothing.
func TestForgedForms(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered)
	page := newPage(t, limiter, console.Options{})
	ban := fields("rule", "api", "subject", "user:bob", "for", "1h", "note", "forged")
	for name, forge := range map[string]func(b *browser, r *http.Request){
		"cross-site":         func(_ *browser, r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a sibling":          func(_ *browser, r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"typed":              func(_ *browser, r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") },
		"two headers":        func(_ *browser, r *http.Request) { r.Header.Add("Sec-Fetch-Site", "same-origin") },
		"no headers":         func(_ *browser, r *http.Request) { r.Header.Del("Sec-Fetch-Site") },
		"another origin":     func(_ *browser, r *http.Request) { replace(r, "Origin", "http://evil.example") },
		"no origin":          func(_ *browser, r *http.Request) { replace(r, "Origin", "null") },
		"an origin's prefix": func(_ *browser, r *http.Request) { replace(r, "Origin", "http://example.com.evil") },
		"no cookie":          func(b *browser, _ *http.Request) { b.cookies = nil },
		"another cookie": func(b *browser, _ *http.Request) {
			b.cookies = []*http.Cookie{{Name: b.cookies[0].Name, Value: strings.Repeat("A", 43)}}
		},
		"two origins": func(_ *browser, r *http.Request) {
			replace(r, "Origin", "http://example.com")
			r.Header.Add("Origin", "http://evil.example")
		},
	} {
		operator := as(t, "operator", page)
		r := operator.form("ban", maps.Clone(ban))
		forge(operator, r)
		if got := operator.do(r); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", name, got.StatusCode, got.body)
		}
	}
	for _, token := range []string{"x", strings.Repeat("A", 43), " "} {
		forged := maps.Clone(ban)
		forged.Set("token", token)
		as(t, "operator", page).send("ban", http.StatusForbidden, forged)
	}
	short := maps.Clone(ban)
	short.Set("token", "AAAA")
	operator := as(t, "operator", page)
	operator.cookies = []*http.Cookie{{Name: "accesslimit-console", Value: "AAAA"}} // no page has made it
	operator.send("ban", http.StatusForbidden, short)
	if changed, err := operate.New(limiter).Unban(context.Background(), "api", "user:bob"); err != nil || changed {
		t.Errorf("a forged form has banned: %v, %v", changed, err)
	}
	// Over plain HTTP, browsers send the origin only.
	operator = as(t, "operator", page)
	r := operator.form("ban", maps.Clone(ban))
	replace(r, "Origin", "http://example.com")
	if got := operator.do(r); got.StatusCode != http.StatusSeeOther {
		t.Errorf("a form of the page itself: status %d", got.StatusCode)
	}
}

func replace(r *http.Request, name, value string) {
	r.Header.Del("Sec-Fetch-Site")
	r.Header.Set(name, value)
}

// Tokens are of one browser, last, and are sent to the page only.
func TestTheTokensCookie(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	one, other := as(t, "operator", page), as(t, "operator", page)
	if one.token() == other.token() {
		t.Error("two browsers have one token")
	}
	if first := one.token(); first != one.token() || len(one.cookies) != 1 {
		t.Errorf("a browser gets another token each time: %v", one.cookies)
	}
	cookie := one.cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "" || cookie.Domain != "" || cookie.MaxAge != 0 || cookie.Secure {
		t.Errorf("the cookie is %v", cookie)
	}
	secure := httptest.NewRequest(http.MethodGet, "https://example.com/limits/", nil)
	if got := as(t, "operator", page).do(secure); !got.Cookies()[0].Secure {
		t.Errorf("over TLS, the cookie is %v", got.Cookies())
	}
}
