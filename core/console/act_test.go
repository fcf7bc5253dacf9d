package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
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

func sameAct(got, want operate.AuditEntry) bool {
	got.After, got.Before = "", ""
	return got == want
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
