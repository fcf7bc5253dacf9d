package console_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
)

// steered is a rule that all acts are about.
var steered = core.Rule{Name: "api", Limit: core.PerHour(100), Ban: core.Ban{ByHand: true}, Overrides: true}

// Acts are carried out, and are in the audit with their author and note.
func TestActs(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		attach(t, limiter, steered)
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		act := func(name string, more ...string) {
			t.Helper()
			got := operator.send(name, http.StatusSeeOther, fields(append(more, "rule", "api", "subject", "user:bob", "note", "ticket 7")...))
			if want := "subject?subject=user%3Abob&done=" + name; got.Header.Get("Location") != want {
				t.Errorf("after %s, the browser goes to %q, want %q", name, got.Header.Get("Location"), want)
			}
		}
		act("ban", "for", "2h")
		act("unban")
		act("override", "kind", "max", "max", "500")
		act("override", "kind", "blocked")
		act("remove-override")
		by := operate.AuditEntry{Rule: "api", Subject: "user:bob", Author: "alice", Note: "ticket 7"}
		var want []operate.AuditEntry
		for _, did := range [][3]string{
			{"ban", "", "banned for 2h0m0s"}, {"unban"}, {"override", "", "500"}, {"override", "500", "blocked"}, {"override removed", "blocked"},
		} {
			by.Act, by.Before, by.After = did[0], did[1], did[2]
			want = append(want, by)
		}
		if got := audit(t, limiter); !reflect.DeepEqual(got, want) {
			t.Errorf("the audit is %+v, want %+v", got, want)
		}
		if body := operator.afterRedirect("subject?subject=user%3Abob&done=ban"); !strings.Contains(body, "The subject is banned.") {
			t.Errorf("the page does not say that it was done:\n%s", body)
		}
	})
}

// A page says that an act was done only after a request from the page itself: anybody can send a link
// to it.
func TestALinkReportsNoAct(t *testing.T) {
	operator := as(t, "operator", newPage(t, newLimiter(t, core.Options{}), console.Options{}))
	for _, try := range []struct {
		name, site, referer string
		reports             bool
	}{
		{"redirect", "same-origin", "", true},
		{"redirect over plain HTTP", "", "http://example.com/limits/subject", true},
		{"typed", "none", "", false},
		{"link", "cross-site", "http://example.com/limits/subject", false},
		{"link of a sibling", "same-site", "", false},
		{"link over plain HTTP", "", "http://evil.example/", false},
		{"typed over plain HTTP", "", "", false},
		{"odd referer", "", "http://%zz", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://example.com/limits/subject?subject=user:bob&done=ban", nil)
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
		if try.site != "" {
			r.Header.Set("Sec-Fetch-Site", try.site)
		}
		if try.referer != "" {
			r.Header.Set("Referer", try.referer)
		}
		got := operator.do(r)
		if reports := strings.Contains(got.body, "The subject is banned."); got.StatusCode != http.StatusOK || reports != try.reports {
			t.Errorf("%s: status %d, reports the act: %t, want %t", try.name, got.StatusCode, reports, try.reports)
		}
	}
}

// An act that changes nothing, or fails, is in the audit too.
func TestFailedActsAreInTheAudit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		attach(t, limiter, steered, core.Rule{Name: "plain", Seconds: 1})
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		try := func(name string, status int, after string, sent ...string) {
			t.Helper()
			all := fields("rule", "api", "subject", "user:bob", "note", "ticket 7", "for", "1h", "kind", "max", "max", "5")
			for name, values := range fields(sent...) {
				all[name] = values
			}
			if to := operator.send(name, status, all).Header.Get("Location"); status == 303 && !strings.HasSuffix(to, "&done=nothing") {
				t.Errorf("after %s of %v, the browser goes to %q", name, sent, to)
			}
			entries := audit(t, limiter)
			last := entries[len(entries)-1]
			if last.Author != "alice" || last.Note != strings.TrimSpace(all.Get("note")) || last.Rule != all.Get("rule") || !strings.HasPrefix(last.After, "not done: "+after) {
				t.Errorf("after %s of %v, the audit ends with %+v", name, sent, last)
			}
		}
		try("unban", 303, "nothing to change")
		try("remove-override", 303, "nothing to change")
		try("ban", 400, "the note must say why", "note", " ")
		try("ban", 400, `"for" = "soon": must be a duration`, "for", "soon")
		try("ban", 400, `"for" = "-1h": must be a duration`, "for", "-1h")
		try("ban", 400, "core: rule \"api\": span", "for", "4000d")
		try("ban", 400, "core: rule \"plain\": Ban", "rule", "plain")
		try("ban", 400, "core: name", "rule", "")
		try("ban", 400, "core: rule \"api\": subject", "subject", "")
		try("override", 400, `max = "many"`, "max", "many")
		try("override", 400, `kind = "less"`, "kind", "less")
		try("override", 400, `core: rule "api": Override.Burst`, "burst", "7")
		try("override", 400, "core: rule \"plain\": Overrides", "rule", "plain")
	})
}

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

func sameAct(got, want operate.AuditEntry) bool {
	got.After, got.Before = "", ""
	return got == want
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

// Bodies are bounded, and of the right type.
func TestBadBodies(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	for _, c := range []struct {
		path, kind, body string
		status           int
	}{
		{"ban", "application/x-www-form-urlencoded", strings.Repeat("x", 64<<10+1), 413},
		{"ban", "multipart/form-data; boundary=x", "--x--", 415},
		{"ban", "application/json", "{}", 415},
		{"ban", "", "", 415},
		{"ban", "application/x-www-form-urlencoded", "a=%zz", 400},
		{"ban", "application/x-www-form-urlencoded", "subject=%22%5Cx", 400},
		{"api/ban", "text/plain", "{}", 415},
		{"api/ban", "application/x-www-form-urlencoded", "a=b", 415},
		{"api/ban", "application/json", "[]", 400},
		{"api/ban", "application/json", `{"for": {}}`, 400},
		{"api/ban", "application/json", `{} {}`, 400},
		{"api/ban", "application/json", `{`, 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "/limits/"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		got := as(t, "operator", page).do(r)
		if got.StatusCode != c.status {
			t.Errorf("%s with %.20q of %q: status %d, want %d: %s", c.path, c.body, c.kind, got.StatusCode, c.status, got.body)
		}
		if c.path == "api/ban" && c.status == 400 && !strings.Contains(got.body, "cannot be read") {
			t.Errorf("%.20q: %s", c.body, got.body)
		}
	}
}

// The JSON API acts as the forms do, without a token, because another site cannot send JSON.
func TestActsInJSON(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		attach(t, limiter, steered)
		page := newPage(t, limiter, console.Options{})
		post := func(role, name, body string, header ...string) answer {
			r := httptest.NewRequest(http.MethodPost, "/limits/api/"+name, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			return as(t, role, page).do(r)
		}
		const about = `"rule": "api", "subject": "198.51.100.7", "note": "ticket 7"`
		for _, c := range []struct {
			name, body string
			changed    bool
		}{
			{"ban", `{"for": "1h", ` + about + `}`, true},
			{"unban", `{` + about + `}`, true},
			{"unban", `{` + about + `}`, false},
			{"override", `{"max": 500, "for": "7d", ` + about + `}`, true},
			{"remove-override", `{` + about + `}`, true},
		} {
			began := time.Now()
			got := post("operator", c.name, c.body)
			want := fmt.Sprintf(`"rule":"api","subject":"ip:198.51.100.7","changed":%t}`, c.changed)
			if got.StatusCode != 200 || !strings.HasSuffix(got.body, want+"\n") {
				t.Errorf("%s: status %d: %s", c.name, got.StatusCode, got.body)
			}
			if c.name == "override" {
				wantUntil(t, limiter, "ip:198.51.100.7", began.Add(7*24*time.Hour), time.Now().Add(7*24*time.Hour))
			}
		}
		before := len(audit(t, limiter))
		for name, got := range map[string]answer{
			"viewer":         post("viewer", "unban", `{`+about+`}`),
			"another site":   post("operator", "unban", `{`+about+`}`, "Sec-Fetch-Site", "cross-site"),
			"another origin": post("operator", "unban", `{`+about+`}`, "Origin", "https://evil.example"),
		} {
			if got.StatusCode != http.StatusForbidden || !strings.HasPrefix(got.body, `{"error":"`) {
				t.Errorf("%s: status %d: %s", name, got.StatusCode, got.body)
			}
		}
		if n := len(audit(t, limiter)) - before; n != 1 {
			t.Errorf("the audit has %d entries about forbidden acts, want that of the viewer only", n)
		}
		if got := post("operator", "ban", `{"for": "0s", `+about+`}`); got.StatusCode != 400 || !strings.Contains(got.body, "must be a duration") {
			t.Errorf("a wrong act: status %d: %s", got.StatusCode, got.body)
		}
	})
}

// wantUntil checks that the override of a subject ends between two times.
func wantUntil(t *testing.T, limiter *core.Limiter, subject string, from, to time.Time) {
	t.Helper()
	overrides, err := operate.New(limiter).Overrides("api")
	if err != nil {
		t.Fatal(err)
	}
	o, ok, err := overrides.Get(t.Context(), subject)
	if err != nil || !ok || o.Until.Before(from.Truncate(time.Microsecond)) || o.Until.After(to) {
		t.Errorf("the override is %v, %t, %v, want an end from %v to %v", o, ok, err, from, to)
	}
}

// An act is carried out whole, also if the operator's browser leaves meanwhile.
func TestActsOfBrowsersThatLeave(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		attach(t, limiter, steered)
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		form := operator.form("ban", fields("rule", "api", "subject", "user:bob", "for", "1h", "note", "ticket 7"))
		gone, leave := context.WithCancel(t.Context())
		leave()
		if got := operator.do(form.WithContext(gone)); got.StatusCode != http.StatusSeeOther {
			t.Errorf("status %d: %s", got.StatusCode, got.body)
		}
		if ban, ok, err := operate.New(limiter).BanOf(t.Context(), "api", "user:bob"); err != nil || !ok || ban.Author != "alice" {
			t.Errorf("the ban is %v, %t, %v", ban, ok, err)
		}
		if entries := audit(t, limiter); len(entries) != 1 || entries[0].Act != "ban" || entries[0].Author != "alice" {
			t.Errorf("the audit is %+v", entries)
		}
	})
}

// While Redis is down, an act fails with 503, within Timeout.
func TestActsWithoutRedis(t *testing.T) {
	options := deadRedis(t)
	options.Timeout = 50 * time.Millisecond
	limiter := newLimiter(t, options)
	attach(t, limiter, steered)
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	got := operator.send("ban", http.StatusServiceUnavailable, fields("rule", "api", "subject", "user:bob", "for", "1h", "note", "n"))
	if !strings.Contains(got.body, "Redis did not answer") {
		t.Errorf("the page says %s", got.body)
	}
}
