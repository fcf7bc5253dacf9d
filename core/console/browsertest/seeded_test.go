package browsertest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostile are users whose names try to be more than text.
var hostile = []string{
	`<img src=x onerror=alert(1)>`,
	`"><svg onload=alert(1)>`,
	`' onmouseover='alert(1)`,
	`</title></textarea><script>alert(1)</script>`,
	`javascript:alert(1)//`,
	`{{.Token}}&lt;b&gt;&#60;`,
}

// long is a user whose name has no place for a line break.
var long = strings.Repeat("W", 200)

// newSeeded starts one process in which something can be seen on every page.
func newSeeded(t testing.TB) *fleet {
	t.Helper()
	f := startFleet(t, 1, "hostile.yaml")
	for _, user := range append([]string{"mallory", "trudy", long}, hostile...) {
		for range 35 {
			f.call(0, "/orders", user)
		}
	}
	for range 28 {
		f.call(0, "/orders", "alice")
		f.call(0, "/boddb", "bob")
	}
	for _, user := range append([]string{"trudy", long}, hostile...) {
		f.act("ban", "orders", "user:"+user, "hammers us: "+user, map[string]string{"for": "2h"})
	}
	for _, user := range append([]string{"dave", long}, hostile...) {
		f.act("override", "orders", "user:"+user, "pays for it: "+user, map[string]string{"limits": "500/h", "for": "7d"})
	}
	f.act("unban", "orders", "user:"+long, "is sorry", nil)
	return f
}

// openOffenders opens the page of the offenders when a user is on it.
func (b *tab) openOffenders(user string) {
	b.t.Helper()
	b.open("offenders")
	b.reloadUntil("user:" + user)
}

// pages returns the paths of all pages in the menu, and of those about some users.
func (b *tab) pages(users ...string) (paths []string) {
	b.t.Helper()
	paths = eval[[]string](b, `[...document.querySelectorAll("header nav a")].map(a => a.getAttribute("href"))`)
	if len(paths) < 6 {
		b.t.Fatalf("the menu has only %q", paths)
	}
	for _, user := range users {
		paths = append(paths, subjectPath(user), explainPath(user))
	}
	return paths
}

func subjectPath(user string) string { return "subject?subject=" + url.QueryEscape("user:"+user) }

// explainPath is the path of the page that explains a call of a user.
func explainPath(user string) string {
	return "explain?method=GET&path=/orders&route=/orders&user=" + url.QueryEscape(user)
}

// size sets the size of the tab.
func (b *tab) size(width, height int64, more ...chromedp.EmulateViewportOption) {
	b.t.Helper()
	b.do("size", chromedp.EmulateViewport(width, height, more...))
}
