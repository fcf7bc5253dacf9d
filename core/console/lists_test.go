package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// refuse makes a subject refused so many times, and as many times less one near the limit.
func refuse(t *testing.T, counter core.Counter, subject string, times int) {
	t.Helper()
	for range times + 1 {
		if _, err := counter.Allow(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
	}
}

// The page has those who were refused most, over all processes.
func TestOffenders(t *testing.T) {
	withBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := after(t, options, func(limiter *core.Limiter) {
			refuse(t, limiter.MustCounter("api", core.PerHour(1)), "user:bob", 5)
			refuse(t, limiter.MustCounter("api", core.PerHour(1)), "user:carol", 3)
			refuse(t, limiter.MustCounter("login", core.PerHour(1)), "user:dave", 4)
		})
		viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
		for query, want := range map[string]string{
			"":                    "[{api user:bob 5} {login user:dave 4} {api user:carol 3}]",
			"?span=1m":            "[{api user:bob 5} {login user:dave 4} {api user:carol 3}]",
			"?span=1h&rule=login": "[{login user:dave 4}]",
			"?rule=none":          "[]",
		} {
			var list struct {
				Refused []struct {
					Rule, Subject string
					Refused       int
				}
				Near []struct{ Used float64 } `json:"near_limit"`
			}
			viewer.json("api/offenders"+query, &list)
			if got := fmt.Sprint(list.Refused); got != want || len(list.Near) != len(list.Refused) {
				t.Errorf("the list of %q is %v, want %v; near a limit: %v", query, got, want, list.Near)
			}
		}
		html := viewer.wantPage("offenders")
		for _, part := range []string{`<a href="subject?subject=user%3abob">user:bob</a></th><td>api</td><td class="n">5</td>`, "100 %"} {
			if !strings.Contains(html, part) {
				t.Errorf("the page lacks %s:\n%s", part, html)
			}
		}
		if body := viewer.wantPage("offenders?rule=none"); !strings.Contains(body, "Nobody was refused") {
			t.Errorf("of another rule, the page says %s", body)
		}
		if got := viewer.get("offenders?span=2h"); got.StatusCode != 400 {
			t.Errorf("a wrong span: status %d", got.StatusCode)
		}
	})
}

// The first page has the busiest rules, and says how many more there are.
func TestNowIsBounded(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for i := range 250 {
		refuse(t, limiter.MustCounter(fmt.Sprint("rule-", i), core.PerHour(1)), "user:bob", 1)
	}
	body := as(t, "viewer", newPage(t, limiter, console.Options{})).wantPage("")
	if n := strings.Count(body, `<th scope="row">`); n != 200 || !strings.Contains(body, "50 more rules") {
		t.Errorf("the page has %d lines", n)
	}
}

// How long calls waited for Redis is said of the last minute, or since the page began.
func TestWaitsAreOfTheLastMinute(t *testing.T) {
	limiter := newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: patient})
	counter := limiter.MustCounter("api", core.PerHour(1))
	refuse(t, counter, "user:bob", 3)
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	if body := viewer.wantPage(""); strings.Contains(body, "99 %") {
		t.Errorf("the page tells of calls before it began: %s", lines(body))
	}
	refuse(t, counter, "user:carol", 3)
	wantParts(t, viewer.wantPage(""), "In the last 2 s, 99 % of calls waited for it at most")
}

var nextIn = regexp.MustCompile(`href="([^"]+)" rel="next"`)

// follow follows the links to further pages, and returns what an expression finds on all of them.
func (b *browser) follow(path string, find *regexp.Regexp) (found []string, pages int) {
	b.t.Helper()
	for {
		pages++
		body := b.wantPage(path)
		for _, match := range find.FindAllStringSubmatch(body, -1) {
			found = append(found, match[1])
		}
		next := nextIn.FindStringSubmatch(body)
		if next == nil {
			return found, pages
		}
		path = strings.ReplaceAll(next[1], "&amp;", "&")
	}
}

// Pages of bans follow each other without a gap, for viewers who see digests too.
func TestBansArePaged(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		attach(t, limiter, steered)
		page := newPage(t, limiter, console.Options{RedactSubjects: true})
		const n = 250
		for i := range n {
			if _, err := operate.New(limiter).Ban(operate.WithActor(t.Context(), "bob", "ticket 7"), "api", fmt.Sprintf("user:&%d\xff", i), 36*time.Hour+30*time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		subject := regexp.MustCompile(`<th scope="row">(?:<a [^>]+>)?([^<]+)<`)
		for _, who := range []string{"operator bans?rule=api", "viewer bans?rule=api", "operator bans", "viewer bans"} {
			role, path, _ := strings.Cut(who, " ")
			found, pages := as(t, role, page).follow(path, subject)
			seen := map[string]bool{}
			for _, subject := range found {
				seen[subject] = true
			}
			if len(found) != n || len(seen) != n || pages != 3 {
				t.Errorf("%s: %d pages have %d bans, %d different ones", who, pages, len(found), len(seen))
			}
			if strings.Contains(strings.Join(found, " "), "user") != (role == "operator") {
				t.Errorf("%s sees %q", role, found[0])
			}
		}
		body := as(t, "operator", page).wantPage("bans?rule=api")
		for _, part := range []string{"by hand", "<td>bob</td>", "ticket 7", "<td>1 day 12 h</td>"} {
			if !strings.Contains(body, part) {
				t.Errorf("the page lacks %q", part)
			}
		}
		if got := as(t, "viewer", page).get("bans?rule=api&after=user:1"); got.StatusCode != 400 {
			t.Errorf("a viewer's page from a subject: status %d", got.StatusCode)
		}
	})
}

// Pages of the audit follow each other without a gap, newest first.
func TestTheAuditIsPaged(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		const n = 205
		for i := range n {
			operate.New(limiter).RecordAttempt(context.Background(), operate.AuditEntry{Act: "ban", Rule: "api", Subject: fmt.Sprint("user:", i)})
		}
		viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
		found, pages := viewer.follow("audit", regexp.MustCompile(`>user:(\d+)<`))
		if len(found) != n || found[0] != "204" || found[n-1] != "0" || pages != 3 {
			t.Errorf("%d pages have %d entries: %v", pages, len(found), found)
		}
		var api struct{ Entries []struct{ Subject string } }
		viewer.json("api/audit", &api)
		if len(api.Entries) != 100 || api.Entries[0].Subject != "user:204" {
			t.Errorf("in JSON: %v", api)
		}
	})
}

// hostile are subjects that try to be something else than text.
var hostile = []string{
	`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `'onmouseover='alert(1)`, `javascript:alert(1)`, `</title><svg onload=alert(1)>`,
	"a\r\nSet-Cookie: x=y\r\n\r\n<b>", "\x00\x01\xff\xfe", "\u202eevil", `{{.Token}}`, `"quoted"`, " spaces ", `</textarea><!--`, "\"\\x", "&lt;b&gt;", "%00%22", "e\u0301",
}

// A subject, a rule's name and a note of any bytes are text everywhere, and lead back to the same
// subject.
func TestHostileTexts(t *testing.T) {
	withBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := after(t, options, func(limiter *core.Limiter) {
			for _, text := range hostile {
				refuse(t, limiter.MustCounter(text, core.PerHour(1)), text, 1)
				if _, err := operate.New(limiter).Ban(operate.WithActor(t.Context(), text, text), "api", text, time.Hour); err != nil {
					t.Fatal(err)
				}
			}
		})
		attach(t, limiter, steered)
		for _, text := range hostile {
			refuse(t, limiter.MustCounter(text, core.PerHour(1)), text, 1)
		}
		operator := as(t, "operator", newPage(t, limiter, console.Options{Title: hostile[0]}))
		wantLinks(t, operator)
		for _, text := range hostile {
			typed := url.QueryEscape(operate.SubjectText(text))
			for _, path := range []string{
				"", "rules", "offenders", "bans?rule=api", "audit", "subject?subject=" + typed, "offenders?rule=" + typed, "bans?rule=" + typed,
				"explain?path=/" + typed + "&method=" + typed + "&user=" + typed, "explain?of=" + typed + "&reference=" + typed,
			} {
				wantText(t, path, operator.get(path))
			}
			// The forms on the page of a subject are about that subject.
			operator.send("unban", 303, fields("rule", "api", "subject", operate.SubjectText(text), "note", text))
			if changed, err := operate.New(limiter).Unban(t.Context(), "api", text); err != nil || changed {
				t.Errorf("%q was not unbanned by its form: %v", text, err)
			}
		}
	})
}

// A subject that the page lists is the one that an act on it meets, even if it has the form in which
// people type another subject.
func TestAListedSubjectIsTheOneThatActsMeet(t *testing.T) {
	withBothEngines(t, func(t *testing.T, options core.Options) {
		options.Identify = func(core.Request) (string, error) { return "mallory|query:a=b", nil }
		rule := core.Rule{Name: "api", Limit: core.PerHour(1), Key: core.ByUser}
		limiter := after(t, options, func(limiter *core.Limiter) {
			guard := attach(t, limiter, rule)
			for range 2 {
				guard.Check(callOf("GET", "/"))
			}
		})
		guard := attach(t, limiter, rule)
		page := newPage(t, limiter, console.Options{})
		var list struct{ Refused []struct{ Subject string } }
		if as(t, "viewer", page).json("api/offenders", &list); len(list.Refused) != 1 {
			t.Fatalf("the page lists %v", list.Refused)
		}
		body := fmt.Sprintf(`{"rule": "api", "subject": %q, "for": "1h", "note": "ticket 7"}`, list.Refused[0].Subject)
		r := httptest.NewRequest(http.MethodPost, "/limits/api/ban", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if got := as(t, "operator", page).do(r); got.StatusCode != 200 {
			t.Fatalf("status %d: %s", got.StatusCode, got.body)
		}
		if refusal := guard.Check(callOf("GET", "/")).Refusal; refusal == nil || refusal.Decision.Reason != core.Banned {
			t.Errorf("after a ban of %s, the call gets %+v", list.Refused[0].Subject, refusal)
		}
	})
}

// wantLinks checks that the links of a page lead to the subjects that they are about.
func wantLinks(t *testing.T, operator *browser) {
	t.Helper()
	links, _ := operator.follow("bans?rule=api", regexp.MustCompile(`<a href="(subject\?subject=[^"]+)"`))
	for _, link := range links {
		if body := operator.wantPage(strings.ReplaceAll(link, "&amp;", "&")); !strings.Contains(body, "Banned for another") {
			t.Errorf("%s leads to another subject", link)
		}
	}
	if slices.Sort(links); len(slices.Compact(links)) != len(hostile) {
		t.Errorf("%d links for %d subjects", len(links), len(hostile))
	}
}

// wantText checks that nothing hostile is more than text.
func wantText(t *testing.T, path string, got answer) {
	t.Helper()
	if got.StatusCode != 200 && got.StatusCode != 400 {
		t.Errorf("%s: status %d", path, got.StatusCode)
	}
	for _, bad := range []string{"<img", "<svg onload", "<script>", "<b>", "\r", "\x00", "\xff", "\u202e", `href="javascript`, `"onmouseover`, "'onmouseover"} {
		if strings.Contains(strings.ReplaceAll(got.body, "&#39;", "&"), bad) {
			t.Errorf("%s has %q", path, bad)
		}
	}
}
