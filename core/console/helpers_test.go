package console_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"go.uber.org/goleak"
)

const patient = limitertest.Patient

var (
	newLimiter      = limitertest.New
	withBothEngines = limitertest.OnBothEngines
	attach          = limitertest.Attach
)

// onBothEngines runs a test in process and on a real Redis that no other test uses.
func onBothEngines(t *testing.T, test func(t *testing.T, limiter *core.Limiter)) {
	withBothEngines(t, func(t *testing.T, options core.Options) { test(t, newLimiter(t, options)) })
}

// after returns a limiter whose lists have the calls made by do, without waiting for it: those of
// another process that has ended, if there is Redis.
func after(t *testing.T, options core.Options, do func(limiter *core.Limiter)) *core.Limiter {
	t.Helper()
	limiter := newLimiter(t, options)
	if options.Redis == nil {
		do(limiter)
		return limiter
	}
	options.Logger = slog.New(slog.DiscardHandler)
	other, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	do(other)
	other.Close()
	return limiter
}

// byHeader authorizes by the headers Role and Name, which tests send.
func byHeader(r *http.Request) (console.Identity, error) {
	who := console.Identity{Name: r.Header.Get("Name")}
	switch r.Header.Get("Role") {
	case "viewer":
		who.Role = console.Viewer
	case "operator":
		who.Role = console.Operator
	case "unknown":
		return console.Identity{Role: console.Operator}, io.ErrUnexpectedEOF
	}
	return who, nil
}

func newPage(t testing.TB, limiter *core.Limiter, options console.Options) *console.Handler {
	t.Helper()
	if options.Authorize == nil {
		options.Authorize = byHeader
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	page, err := console.New(limiter, options)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, page.Close)
	return page
}

// browser makes requests to a handler as a browser does, which keeps cookies.
type browser struct {
	t       testing.TB
	handler http.Handler
	role    string
	cookies []*http.Cookie
	mount   string
}

// as returns a browser of somebody with a role. All names are alice.
func as(t testing.TB, role string, handler http.Handler) *browser {
	return &browser{t: t, handler: handler, role: role, mount: "/limits/"}
}

// answer is a reply.
type answer struct {
	*http.Response
	body string
}

func (b *browser) do(r *http.Request) answer {
	b.t.Helper()
	if b.role != "" {
		r.Header.Set("Role", b.role)
		r.Header.Set("Name", "alice")
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	reply := readAll(b.t, w.Result())
	b.cookies = append(b.cookies, reply.Cookies()...)
	return reply
}

func readAll(t testing.TB, reply *http.Response) answer {
	t.Helper()
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{reply, string(body)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.do(httptest.NewRequest(http.MethodGet, b.mount+path, nil))
}

// wantPage gets a page that must be there.
func (b *browser) wantPage(path string) string {
	b.t.Helper()
	got := b.get(path)
	if got.StatusCode != http.StatusOK {
		b.t.Fatalf("GET %s: status %d: %s", path, got.StatusCode, got.body)
	}
	return got.body
}

// afterRedirect gets a page as a browser does that follows a redirect of the page itself.
func (b *browser) afterRedirect(path string) (body string) {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodGet, b.mount+path, nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(r).body
}

var tokenIn = regexp.MustCompile(`name="token" value="([^"]+)"`)

// form returns the request by which a browser sends a form of the page.
func (b *browser) form(path string, fields url.Values) *http.Request {
	b.t.Helper()
	if fields.Get("token") == "" {
		fields.Set("token", b.token())
	}
	r := httptest.NewRequest(http.MethodPost, b.mount+path, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// token returns the token of the page's forms, or "none" if there are no forms.
func (b *browser) token() string {
	b.t.Helper()
	found := tokenIn.FindStringSubmatch(b.wantPage("subject?subject=somebody"))
	if found == nil {
		return "none"
	}
	return found[1]
}

// send sends a form and checks the status of the reply.
func (b *browser) send(path string, status int, fields url.Values) answer {
	b.t.Helper()
	got := b.do(b.form(path, fields))
	if got.StatusCode != status {
		b.t.Fatalf("POST %s %v: status %d, want %d: %s", path, fields, got.StatusCode, status, got.body)
	}
	return got
}

// json gets a reply of the JSON API into a value.
func (b *browser) json(path string, into any) {
	b.t.Helper()
	got := b.get(path)
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/json" {
		b.t.Fatalf("GET %s: status %d, %s: %s", path, got.StatusCode, got.Header.Get("Content-Type"), got.body)
	}
	if err := json.Unmarshal([]byte(got.body), into); err != nil {
		b.t.Fatal(err)
	}
}

// audit returns the entries of the audit, oldest first, without what differs from run to run.
func audit(t testing.TB, limiter *core.Limiter) (entries []operate.AuditEntry) {
	t.Helper()
	found, err := operate.New(limiter).Audit(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		e := found[len(found)-1-i]
		e.ID, e.Time = "", time.Time{}
		entries = append(entries, e)
	}
	return entries
}

func fields(pairs ...string) url.Values {
	values := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

func TestMain(m *testing.M) {
	leakcheck.Main(m,
		// fasthttp updates the date every second for all of its servers, once the first one has
		// started.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// The cleaner of a server that has ended notices that only after sleeping for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}
