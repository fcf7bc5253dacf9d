package browsertest

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

const banJSON = `{"rule": "orders", "subject": "user:alice", "for": "1h", "note": "because"}`

// wantPasses checks that a user is not banned.
func wantPasses(t testing.TB, f *fleet, user string) {
	t.Helper()
	if got := f.call(0, "/orders", user); got.status != http.StatusOK {
		t.Errorf("a call of %s: %+v", user, got)
	}
}

// elsewhere serves a page that tries, as soon as it is opened, to act on the operator's page.
var elsewhere = template.Must(template.New("").Parse(`<!DOCTYPE html>
<title>Elsewhere</title><link rel="icon" href="data:,">
<form method="post" action="{{.}}ban">
<input name="rule" value="orders"><input name="subject" value="user:alice"><input name="for" value="1h">
<input name="note" value="because"><input name="token" value="">
</form>
<iframe></iframe>`))

// newElsewhere returns the URL of a page of another origin, by a name of this host.
func newElsewhere(t testing.TB, name, home string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := elsewhere.Execute(w, home); err != nil {
			t.Error(err)
		}
	}))
	bounded.Cleanup(t, server.Close)
	return strings.Replace(server.URL, "127.0.0.1", name, 1)
}

// A page of another origin can neither send a form, nor call the API, nor put the page into a
// frame. Browsers send its cookies and passwords to the page if only the port is another. Over HTTP
// and by a name, they do not send Sec-Fetch-Site.
func TestAnotherOriginCannotAct(t *testing.T) {
	for name, test := range map[string]struct{ home, elsewhere string }{
		"another port":                  {"127.0.0.1", "127.0.0.1"},
		"another port, by a name":       {plainName, plainName},
		"another site":                  {"127.0.0.1", "elsewhere.test"},
		"another site, both by a name":  {plainName, "elsewhere.test"},
		"another site, from an address": {plainName, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 1, "rules.yaml")
			home := strings.Replace(f.page(0), "127.0.0.1", test.home, 1)
			b := newTab(t, home, "olga")
			b.open("subject?subject=user:alice") // which has the forms, and sets the cookie
			from := newElsewhere(t, test.elsewhere, home)
			for _, part := range []string{
				"status of 403", "401 (Unauthorized)", "blocked by CORS policy", "net::ERR_FAILED", "issue: CorsIssue",
				"frame-ancestors", "favicon.ico", "issue: ContentSecurityPolicyIssue", "issue: BounceTrackingIssue", "NavigationEntryMarkedSkippable",
			} {
				b.expect(part)
			}
			wantStatus(t, "open another page", b.load("open another page", chromedp.Navigate(from)), http.StatusOK)

			for _, contentType := range []string{"application/json", "text/plain"} {
				call := fmt.Sprintf(`fetch(%q, {method: "POST", credentials: "include", headers: {"Content-Type": %q}, body: %q}).then(() => "sent", () => "refused")`,
					home+"api/ban", contentType, banJSON)
				if got := eval[string](b, call); got != "refused" {
					t.Errorf("the API, called with %s: %s", contentType, got)
				}
			}
			wantNoFrame(t, b)
			status := b.load("send a form", chromedp.Evaluate[chromedp.Void](`document.forms[0].submit()`))
			if status != http.StatusForbidden && status != http.StatusUnauthorized {
				t.Errorf("the form: status %d\n%s", status, b.shown())
			}
			wantPasses(t, f, "alice")
			b.open("audit")
			if shown := b.text(); strings.Contains(shown, "not done") || strings.Contains(shown, "because") {
				t.Errorf("the audit has an act of another site:\n%s", shown)
			}
		})
	}
}

// A site that somebody opens can make the browser send any number of requests without credentials.
// They keep nobody from the page, neither in that tab nor in one in which nobody is logged in yet.
// Over HTTP and by a name, nothing in such a request tells where it comes from.
func TestAnotherOriginLocksOutNobody(t *testing.T) {
	for _, name := range []string{"127.0.0.1", plainName} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 1, "rules.yaml")
			home := strings.Replace(f.page(0), "127.0.0.1", name, 1)
			b := newTab(t, home, "olga")
			b.open("")
			for _, part := range []string{"status of 403", "401 (Unauthorized)", "net::ERR_", "issue: "} {
				b.expect(part)
			}
			wantStatus(t, "open another page", b.load("open another page", chromedp.Navigate(newElsewhere(t, "elsewhere.test", home))), http.StatusOK)
			const send = `Promise.all(Array.from({length: 40}, () => fetch(%q, {mode: "no-cors", credentials: "omit", referrerPolicy: "no-referrer"}).catch(() => {}))).then(() => "sent")`
			eval[string](b, fmt.Sprintf(send, home))
			b.open("audit")
			newTab(t, home, "victor").open("audit")
		})
	}
}

// wantNoFrame checks that the page does not appear in a frame.
func wantNoFrame(t testing.TB, b *tab) {
	t.Helper()
	b.do("fill the frame", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`new Promise(done => { const frame = document.querySelector("iframe"); frame.onload = done; frame.src = %q; })`, b.home), chromedp.EvalAwaitPromise))
	tree, err := chromedp.Run(b.ctx, func(ctx context.Context, to *chromedp.Target) (page.GetFrameTreeResult, error) {
		return cdp.Call(ctx, to, page.GetFrameTree, cdp.Empty{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range tree.FrameTree.ChildFrames {
		if strings.HasPrefix(child.Frame.URL, "http") {
			t.Errorf("the page is shown in a frame, at %s", child.Frame.URL)
		}
	}
}

// Over HTTP and by a name, an operator can act too.
func TestOperatorActsWithoutSecFetchSite(t *testing.T) {
	f := startFleet(t, 1, "rules.yaml")
	b := newTab(t, strings.Replace(f.page(0), "127.0.0.1", plainName, 1), "olga")
	b.open(subjectPath("mallory"))
	wantStatus(t, "ban", b.send("ban", "rule", "orders", "for", "2h", "note", "because"), http.StatusOK)
	b.wants("The subject is banned.")
}
