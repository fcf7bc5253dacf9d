package console_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
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
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		page := newPage(t, limiter, console.Options{})
		viewer := as(t, "viewer", page)
		if body := viewer.wantPage("offenders"); !strings.Contains(body, "Nobody was refused") {
			t.Errorf("the page says %s", body)
		}
		refuse(t, limiter.MustCounter("api", core.PerHour(1)), "user:bob", 5)
		refuse(t, limiter.MustCounter("api", core.PerHour(1)), "user:carol", 3)
		refuse(t, limiter.MustCounter("login", core.PerHour(1)), "user:dave", 4)
		type list struct {
			Refused []struct {
				Rule, Subject string
				Refused       int
			}
			Near []struct{ Used float64 } `json:"near_limit"`
		}
		await(t, func() bool {
			var all list
			viewer.json("api/offenders?span=1m", &all)
			return fmt.Sprint(all.Refused) == "[{api user:bob 5} {login user:dave 4} {api user:carol 3}]" && len(all.Near) == 3 && all.Near[0].Used == 1
		})
		var one list
		viewer.json("api/offenders?span=1h&rule=login", &one)
		if fmt.Sprint(one.Refused) != "[{login user:dave 4}]" {
			t.Errorf("the list of one rule is %v", one.Refused)
		}
		html := viewer.wantPage("offenders")
		for _, part := range []string{`<a href="subject?subject=user%3abob">user:bob</a></th><td>api</td><td class="n">5</td>`, "100 %"} {
			if !strings.Contains(html, part) {
				t.Errorf("the page lacks %s:\n%s", part, html)
			}
		}
		if got := viewer.get("offenders?span=2h"); got.StatusCode != 400 {
			t.Errorf("a wrong span: status %d", got.StatusCode)
		}
	})
}

// await waits until something is so, which takes a few seconds because of what runs in the
// background.
func await(t *testing.T, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !isSo(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not so")
		}
	}
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
		limiter.MustGuard(steered)
		page := newPage(t, limiter, console.Options{RedactSubjects: true})
		const n = 250
		for i := range n {
			if _, err := limiter.Ban(core.WithActor(t.Context(), "bob", "ticket 7"), "api", fmt.Sprintf("user:&%d\xff", i), time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		subject := regexp.MustCompile(`<th scope="row">(?:<a [^>]+>)?([^<]+)<`)
		for _, role := range []string{"operator", "viewer"} {
			found, pages := as(t, role, page).follow("bans?rule=api", subject)
			seen := map[string]bool{}
			for _, subject := range found {
				seen[subject] = true
			}
			if len(found) != n || len(seen) != n || pages != 3 {
				t.Errorf("%s: %d pages have %d bans, %d different ones", role, pages, len(found), len(seen))
			}
			if strings.Contains(strings.Join(found, " "), "user") != (role == "operator") {
				t.Errorf("%s sees %q", role, found[0])
			}
		}
		body := as(t, "operator", page).wantPage("bans?rule=api")
		for _, part := range []string{"by hand", "<td>bob</td>", "ticket 7", "59 min"} {
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
			limiter.RecordAttempt(context.Background(), core.AuditEntry{Act: "ban", Rule: "api", Subject: fmt.Sprint("user:", i)})
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
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		limiter.MustGuard(steered)
		page := newPage(t, limiter, console.Options{Title: hostile[0], RedactSubjects: true})
		for _, text := range hostile {
			ctx := core.WithActor(t.Context(), text, text)
			if _, err := limiter.Ban(ctx, "api", text, time.Hour); err != nil {
				t.Fatal(err)
			}
			refuse(t, limiter.MustCounter(text, core.PerHour(1)), text, 1)
		}
		await(t, func() bool {
			return strings.Count(as(t, "operator", page).wantPage("api/offenders"), `"refused":1}`) == len(hostile)
		})
		for _, role := range []string{"operator", "viewer"} {
			for _, path := range []string{"", "offenders", "bans?rule=api", "audit", "subject?subject=" + url.QueryEscape(show(hostile[0]))} {
				body := as(t, role, page).wantPage(path)
				for _, bad := range []string{"<img", "<svg onload", "<script>", "<b>", "\r", "\x00", "\xff", "\u202e", "href=\"javascript", "onmouseover='"} {
					if strings.Contains(body, bad) {
						t.Errorf("%s of a %s has %q", path, role, bad)
					}
				}
				if role == "viewer" && path != "" && strings.Contains(body, "\\x00\\x01") && path != "audit" {
					t.Errorf("%s shows a subject to a viewer", path)
				}
			}
		}
		operator := as(t, "operator", page)
		links := regexp.MustCompile(`<a href="(subject\?subject=[^"]+)"`)
		found, _ := operator.follow("bans?rule=api", links)
		if len(found) != len(hostile) {
			t.Fatalf("the page has %d links: %q", len(found), found)
		}
		typed := regexp.MustCompile(`name="subject" value="([^"]*)"><div`)
		_ = typed
		for _, link := range found {
			operator.wantPage(strings.ReplaceAll(link, "&amp;", "&"))
		}
		for _, text := range hostile { // the form of a subject's page is about that subject
			operator.send("unban", 303, fields("rule", "api", "subject", show(text), "note", "n"))
			if changed, err := limiter.Unban(t.Context(), "api", text); err != nil || changed {
				t.Errorf("%q was not unbanned by its form: %v", text, err)
			}
		}
	})
}

// show returns a subject as a page shows it.
func show(subject string) string { return console.Show(subject) }
