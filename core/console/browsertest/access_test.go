package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axe is the source of axe-core, which "make web" installs.
func axe(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf(`%v: "make axe" in the accesslimit repository installs axe-core`, err)
	}
	return string(source)
}

// runAxe returns what axe-core finds, a line each.
const runAxe = `axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
	.then(found => found.violations.flatMap(v => v.nodes.map(n => v.impact + " " + v.id + ": " + v.help + ": " + n.html)))`

// axe-core finds nothing on any page: not in light and dark, and not on a phone.
func TestPagesAreAccessible(t *testing.T) {
	source, f := axe(t), newSeeded(t)
	b := newTab(t, f.page(0), "olga")
	b.expect("status of 400")
	b.openOffenders("mallory")
	paths := b.pages("mallory", "trudy", "nobody")
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		for _, width := range []int64{1280, 360} {
			b.size(width, 800)
			for _, path := range paths {
				b.open(path)
				b.wantAccessible(source, fmt.Sprintf("%s, %s, %d pixels", path, scheme, width))
			}
			b.open(subjectPath("mallory"))
			wantStatus(t, "a ban for nonsense", b.send("ban", "rule", "orders", "for", "nonsense", "note", "because"), http.StatusBadRequest)
			b.wantAccessible(source, fmt.Sprintf("the page of a problem, %s, %d pixels", scheme, width))
		}
	}
}

// wantAccessible checks the present page with axe-core.
func (b *tab) wantAccessible(source, name string) {
	b.t.Helper()
	b.do("load axe-core", chromedp.Evaluate[chromedp.Void](source))
	for _, found := range eval[[]string](b, runAxe) {
		b.t.Errorf("%s: %s", name, found)
	}
}

// prefer sets the colours that the reader prefers: light or dark.
func (b *tab) prefer(scheme string) {
	b.t.Helper()
	b.do("prefer "+scheme, func(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return chromedp.Void{}, err
	})
}

// On a phone, no page is wider than the screen.
func TestPagesFitOnAPhone(t *testing.T) {
	f := newSeeded(t)
	b := newTab(t, f.page(0), "olga")
	b.openOffenders("mallory")
	paths := b.pages(append(hostile, "mallory", "trudy", long)...)
	b.size(360, 740, chromedp.EmulateMobile)
	for _, path := range paths {
		b.open(path)
		if width := eval[int](b, `document.documentElement.scrollWidth`); width > 360 {
			t.Errorf("%s is %d pixels wide, because of:\n%s", path, width, strings.Join(eval[[]string](b, tooWide), "\n"))
		}
	}
}

// tooWide returns the elements that reach beyond the screen, or whose text does, and that are in no
// box that scrolls.
const tooWide = `[...document.querySelectorAll("body *")]
	.filter(e => !e.closest(".scroll") && !e.matches("input") && e.getBoundingClientRect().left + e.scrollWidth > 360)
	.map(e => e.outerHTML.slice(0, 120))`

// Without script, the pages show the same, and operators act.
func TestPageWorksWithoutScript(t *testing.T) {
	f := newSeeded(t)
	b := newTab(t, f.page(0), "olga")
	b.do("switch script off", func(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, to, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	b.open("")
	b.wants("as of", "orders", "<b>odd</b>")
	if shown := b.text(); strings.Contains(shown, "Pause") {
		t.Errorf("a button is shown that needs script:\n%s", shown)
	}
	for _, path := range b.pages("mallory", "trudy") {
		b.open(path)
	}
	b.openOffenders("mallory")
	b.follow("user:mallory")
	wantStatus(t, "ban", b.send("ban", "rule", "orders", "for", "2h", "note", "by hand"), http.StatusOK)
	b.wants("The subject is banned.")
	b.follow("Audit")
	b.wants("by hand")
}

// An operator needs no mouse: the offender is found, opened and banned by keys alone, and it can be
// seen at any time where the keys go.
func TestKeyboardIsEnough(t *testing.T) {
	f := newSeeded(t)
	b := newTab(t, f.page(0), "olga")
	b.openOffenders("mallory")
	b.open("")
	b.tabTo(linkTo("Offenders"))
	b.load("Enter", chromedp.KeyEvent(kb.Enter))
	b.tabTo(linkTo("user:mallory"))
	b.load("Enter", chromedp.KeyEvent(kb.Enter))
	for _, field := range [][2]string{{"rule", "orders"}, {"for", "2h"}, {"note", "by the keys"}} {
		b.tabTo(`e.matches("form[action=ban] [name=` + field[0] + `]")`)
		b.do("type", chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(field[1]))
	}
	wantStatus(t, "ban", b.load("Enter", chromedp.KeyEvent(kb.Enter)), http.StatusOK)
	b.wants("The subject is banned.")
	b.open("audit")
	b.wants("by the keys")
}

func linkTo(text string) (condition string) {
	return fmt.Sprintf("e.matches('a') && e.innerText === %q", text)
}

// focused reports whether the element e that has the focus meets a condition, and whether a reader
// can see that it has the focus.
const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e);
	const visible = e === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
	return {is: %s, visible, html: e.outerHTML.slice(0, 200)};
})()`

// tabTo presses the tab key until the element e that has the focus meets a condition.
func (b *tab) tabTo(condition string) {
	b.t.Helper()
	for range 300 {
		b.do("press the tab key", chromedp.KeyEvent(kb.Tab))
		at := eval[struct {
			Is      bool   `json:"is"`
			Visible bool   `json:"visible"`
			HTML    string `json:"html"`
		}](b, fmt.Sprintf(focused, condition))
		if !at.Visible {
			b.t.Errorf("it cannot be seen that this has the focus: %s", at.HTML)
		}
		if at.Is {
			return
		}
	}
	b.t.Fatalf("the tab key does not lead to %s:\n%s", condition, b.shown())
}
