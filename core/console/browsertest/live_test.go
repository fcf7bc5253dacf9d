package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// soon is far above what an event takes to arrive, and below the minute after which a stream ends,
// leaves its connection to another tab, and begins anew.
const soon = 30 * time.Second

// allowed is the total of a rule's allowed calls, as the first page shows it.
const allowed = `[...document.querySelectorAll("#live tbody tr")].filter(row => row.cells[0].innerText === "orders").map(row => row.cells[4].innerText).join()`

// The figures of the first page change while it is open, and can be paused.
func TestFiguresAreLive(t *testing.T) {
	f := startFleet(t, 1, "rules.yaml")
	b := newTab(t, f.page(0), "olga")
	f.call(0, "/orders", "alice")
	b.open("")
	b.do("mark the page", chromedp.Evaluate[chromedp.Void](`window.marked = true`))
	for _, want := range []string{"2", "3"} {
		f.call(0, "/orders", "alice")
		b.do("wait for "+want, chromedp.Poll[chromedp.Void](allowed+` === "`+want+`"`, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(soon)))
	}
	if !eval[bool](b, `window.marked === true`) {
		t.Error("the page was loaded again")
	}
	b.wants("live")
	b.do("pause", chromedp.Click(chromedp.CSS("#live-pause")))
	b.wants("paused", "Resume")
	f.call(0, "/orders", "alice")
	b.do("resume", chromedp.Click(chromedp.CSS("#live-pause")))
	b.do("wait for 4", chromedp.Poll[chromedp.Void](allowed+` === "4"`, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(soon)))
}

// Browsers have at most six connections to a host. The tabs that nobody sees must not use them up.
func TestManyTabsAreNoObstacle(t *testing.T) {
	f := startFleet(t, 1, "rules.yaml")
	first := newTab(t, f.page(0), "olga")
	first.open("")
	first.untilLive()
	first.window(browser.WindowStateMinimized)
	for range 8 {
		b := first.another()
		b.open("")
		b.untilLive()
		b.window(browser.WindowStateMinimized)
	}
	first.wants("not live")
	first.window(browser.WindowStateNormal)
	first.untilLive()
}

// another opens a further window of the same reader.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.t, b.ctx, b.home, chromedp.WithNewWindow(true))
}

// untilLive waits until the first page is live.
func (b *tab) untilLive() {
	b.t.Helper()
	b.do("wait until the page is live", chromedp.Poll[chromedp.Void](
		`document.getElementById("live-state").innerText === "live"`, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(soon)))
}

// window changes the state of the tab's window.
func (b *tab) window(state browser.WindowState) {
	b.t.Helper()
	target := chromedp.FromContext(b.ctx).Target.TargetID
	of, err := chromedp.CallBrowser(b.ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{TargetID: target})
	if err == nil {
		_, err = chromedp.CallBrowser(b.ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{
			WindowID: of.WindowID, Bounds: &browser.Bounds{WindowState: state},
		})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
