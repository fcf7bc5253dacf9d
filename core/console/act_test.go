package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
)

// steered is a rule that all acts are about. Its key function may return any subject.
var steered = core.Rule{
	Name: "api", Limit: core.PerHour(100),
	Key: func(r core.Request) (string, error) { return core.ByIP(r) },
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
		attach(t, limiter, steered)
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		try := func(name string, status int, after string, sent ...string) {
			t.Helper()
			all := fields("rule", "api", "subject", "user:bob", "note", "ticket 7", "for", "1h", "limits", "5/h")
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
		try("ban", 400, "core: name", "rule", "")
		try("ban", 400, "core: rule \"api\": subject", "subject", "")
		try("override", 400, `limits = "many"`, "limits", "many")
		try("override", 400, `kind = "less"`, "kind", "less")
		try("override", 400, `core: rule "api": Override.Limits`, "limits", "5/h, 6/h")
		try("ban", 400, `core: rule "api": subject`, "subject", "203.0.113.7/24")
	})
}

func sameAct(got, want operate.AuditEntry) bool {
	got.After, got.Before = "", ""
	return got == want
}

// Bodies are bounded, and of the right type. A misspelled field in JSON is an error: an override without its
// "for" would have no end.
func TestBadBodies(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered)
	page := newPage(t, limiter, console.Options{})
	const form, json, about = "application/x-www-form-urlencoded", "application/json", `"rule": "api", "subject": "user:bob", "note": "ticket 7"`
	for _, c := range []struct {
		path, kind, body string
		status           int
		says             string
	}{
		{"ban", form, strings.Repeat("x", 64<<10+1), 413, "at most 65536 bytes"},
		{"ban", "multipart/form-data; boundary=x", "--x--", 415, form},
		{"ban", json, "{}", 415, form},
		{"ban", "", "", 415, form},
		{"ban", form, "a=%zz", 400, "cannot be read"},
		{"ban", form, "subject=%22%5Cx", 400, "must be a string literal of Go"},
		{"api/ban", "text/plain", "{}", 415, json},
		{"api/ban", form, "a=b", 415, json},
		{"api/ban", json, "[]", 400, "it must be an object of texts and numbers"},
		{"api/ban", json, `{"for": {}}`, 400, `\"for\" is neither a text nor a number`},
		{"api/reset", json, `{"note": true}`, 400, `\"note\" is neither a text nor a number`},
		{"api/ban", json, `{} {}`, 400, "there is more than an object"},
		{"api/ban", json, `{`, 400, "cannot be read"},
		{"api/override", json, `{"limits": "5/h", "span": "1h", ` + about + "}", 400,
			`unknown field \"span\": the fields are rule, subject, note, kind, limits, for`},
		{"api/unban", json, `{"for": "1h", ` + about + "}", 400, `unknown field \"for\": the fields are rule, subject, note`},
	} {
		r := httptest.NewRequest(http.MethodPost, "/limits/"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		got := as(t, "operator", page).do(r)
		if got.StatusCode != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s with %.20q of %q: status %d, want %d and %q: %s", c.path, c.body, c.kind, got.StatusCode, c.status, c.says, got.body)
		}
	}
	if changed := slices.ContainsFunc(audit(t, limiter), func(e operate.AuditEntry) bool { return !strings.HasPrefix(e.After, "not done") }); changed {
		t.Errorf("something was done: %+v", audit(t, limiter))
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
			{"override", `{"limits": "500/h", "for": "7d", ` + about + `}`, true},
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
