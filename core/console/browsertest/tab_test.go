package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

const (
	// patience bounds each test's use of a tab, however busy the machine.
	patience = 10 * time.Minute
	// plainName is a name that leads to 127.0.0.1, as all under .test do here. Browsers do not trust
	// it as they trust 127.0.0.1 itself: over HTTP they send no Sec-Fetch-Site to it.
	plainName = "console.test"
)

// tab is a tab of the browser, with cookies and passwords of its own. It records every request, and
// everything that the developer's console would show. If there is any of that, or a request leaves
// the loopback address, the test fails.
type tab struct {
	t    testing.TB
	ctx  context.Context
	home string // the URL of the operator's page, with a slash at the end

	mu       sync.Mutex
	requests []string // to their URLs
	messages []string // of the console
	expected []string // parts of messages that are no failure
}

// newTab opens a tab and logs somebody in to the operator's page at a URL.
func newTab(t testing.TB, home, name string) *tab {
	t.Helper()
	b := openTab(t, chromium, home, chromedp.WithNewBrowserContext())
	b.logIn(name)
	return b
}

// openTab opens a tab for a page at a URL.
func openTab(t testing.TB, in context.Context, home string, option chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, home: home}
	ctx, cancel := chromedp.NewContext(in, option, chromedp.WithListener(b.record))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	b.do("watch for issues", func(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, to, audits.Enable, cdp.Empty{})
		return chromedp.Void{}, err
	})
	bounded.Cleanup(t, b.check)
	return b
}

// logIn opens the page once with a name and a password, which the browser sends from then on.
func (b *tab) logIn(name string) {
	b.t.Helper()
	with, err := url.Parse(b.home)
	if err != nil {
		b.t.Fatal(err)
	}
	with.User = url.UserPassword(name, "secret")
	b.do("log in", chromedp.Navigate(with.String()))
}

// record records an event.
func (b *tab) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	say := func(format string, args ...any) { b.messages = append(b.messages, fmt.Sprintf(format, args...)) }
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, event.Request.URL)
	case *network.EventResponseReceived:
		if ip := net.ParseIP(event.Response.RemoteIPAddress); ip != nil && !ip.IsLoopback() {
			say("%s was answered by %s", event.Response.URL, ip)
		}
	case *runtime.EventConsoleAPICalled:
		say("console.%s %s", event.Type, arguments(event.Args))
	case *runtime.EventExceptionThrown:
		say("exception: %s", event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		say("%s %s: %s %s", event.Entry.Source, event.Entry.Level, event.Entry.Text, event.Entry.URL)
	case *audits.EventIssueAdded:
		details, _ := json.Marshal(event.Issue.Details)
		say("issue: %s %s", event.Issue.Code, details)
	case *page.EventJavascriptDialogOpening:
		say("dialog: %s", event.Message)
	}
}

func arguments(values []*runtime.RemoteObject) string {
	var texts []string
	for _, value := range values {
		texts = append(texts, string(value.Value)+value.Description)
	}
	return strings.Join(texts, " ")
}

// check fails the test if the tab did, or said, something that it should not have.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, request := range b.requests {
		u, err := url.Parse(request)
		if err != nil || u.Scheme != "data" && u.Hostname() != "127.0.0.1" && !strings.HasSuffix(u.Hostname(), ".test") {
			b.t.Errorf("a request was made to %s", request)
		}
	}
	for _, message := range b.messages {
		isPart := func(part string) bool { return strings.Contains(message, part) }
		if !slices.ContainsFunc(b.expected, isPart) {
			b.t.Errorf("the browser's console is not empty: %s", message)
		}
	}
}

// expect lets messages of the console pass that have this part.
func (b *tab) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, part)
}

// do does something that must succeed.
func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.shown())
	}
}

// shown returns what a failed tab shows.
func (b *tab) shown() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// eval returns the value of an expression in JavaScript.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// load does something that leads to another page, and returns its status when it is loaded.
func (b *tab) load(what string, steps ...chromedp.Action[chromedp.Void]) (status int) {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, steps...)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.shown())
	}
	return int(response.Status)
}

// open opens a path below the operator's page, which must be there.
func (b *tab) open(path string) {
	b.t.Helper()
	if status := b.load("open "+path, chromedp.Navigate(b.home+path)); status != 200 {
		b.t.Fatalf("%s: status %d\n%s", path, status, b.shown())
	}
}

// follow clicks on a link by its text.
func (b *tab) follow(text string) {
	b.t.Helper()
	if status := b.load("follow "+text, chromedp.Click(link(text))); status != 200 {
		b.t.Fatalf("the link %q: status %d\n%s", text, status, b.shown())
	}
}

func link(text string) chromedp.Search {
	return chromedp.Search(`//a[normalize-space()=` + literal(text) + `]`)
}

// literal returns a string as XPath spells it, which knows no escapes.
func literal(text string) string {
	if !strings.Contains(text, `"`) {
		return `"` + text + `"`
	}
	return `concat("` + strings.ReplaceAll(text, `"`, `", '"', "`) + `")`
}

// send fills in the form of an act and sends it, and returns the status of the reply.
func (b *tab) send(act string, fields ...string) (status int) {
	b.t.Helper()
	form := `form[action="` + act + `"] `
	for i := 0; i < len(fields); i += 2 {
		field := chromedp.CSS(form + `[name="` + fields[i] + `"]`)
		b.do("fill in "+fields[i], chromedp.Clear(field), chromedp.SendKeys(field, fields[i+1]))
	}
	return b.load("send "+act, chromedp.Click(chromedp.CSS(form+`button[type=submit]`)))
}

// text returns the text of the page, as it is shown.
func (b *tab) text() string {
	b.t.Helper()
	return eval[string](b, `document.body.innerText`)
}

// wants fails the test unless the page shows each of the texts.
func (b *tab) wants(texts ...string) {
	b.t.Helper()
	shown := b.text()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			b.t.Fatalf("the page does not show %q:\n%s", text, shown)
		}
	}
}

// reloadUntil loads the present page again until it shows a text.
func (b *tab) reloadUntil(text string) {
	b.t.Helper()
	b.reloadWhile(func(shown string) bool { return !strings.Contains(shown, text) })
}

// reloadWhile loads the present page again while it shows something wrong.
func (b *tab) reloadWhile(wrong func(shown string) bool) {
	b.t.Helper()
	for wrong(b.text()) {
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("the page never changed:\n%s", b.shown())
		case <-time.After(250 * time.Millisecond):
		}
		b.load("reload", chromedp.Reload())
	}
}
