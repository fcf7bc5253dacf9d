package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// reader reads the events of a page over a real connection.
type reader struct {
	*http.Response
	t     testing.TB
	lines *bufio.Reader
	leave context.CancelFunc
}

// read opens a stream of events.
func read(t testing.TB, url string) *reader { return readAs(t, "alice", url) }

func readAs(t testing.TB, name, url string) *reader {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/limits/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Role", "viewer")
	r.Header.Set("Name", name)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() {
		leave()
		_ = reply.Body.Close()
	})
	return &reader{reply, t, bufio.NewReader(reply.Body), leave}
}

// event returns the next event, or false at the end of the stream.
func (r *reader) event() (html string, ok bool) {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			return "", false
		}
		if data, found := strings.CutPrefix(line, "data: "); found {
			if err := json.Unmarshal([]byte(data), &html); err != nil {
				r.t.Fatalf("the event is %q: %v", data, err)
			}
			return html, true
		}
	}
}

func serve(t testing.TB, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	bounded.Cleanup(t, server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server.URL
}

// A stream shows new figures as they come.
func TestLive(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	counter := limiter.MustCounter("<b>\r\n\xff", core.PerHour(1))
	live := read(t, serve(t, newPage(t, limiter, console.Options{})))
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform",
	} {
		if got := live.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	padding, err := live.lines.ReadString('\n')
	if err != nil || len(padding) < 4<<10 || padding[0] != ':' {
		t.Errorf("the stream begins with %d bytes of padding: %.9q, %v", len(padding), padding, err)
	}
	if html, ok := live.event(); !ok || !strings.Contains(html, "No rule has decided a call yet.") {
		t.Fatalf("the first event is %t, %s", ok, html)
	}
	for range 3 {
		if _, err := counter.Allow(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if html, ok := live.event(); !ok || !strings.Contains(html, "&lt;b&gt;") || strings.Contains(html, "<b>") {
		t.Errorf("the next event is %t, %s", ok, html)
	}
}

// There is room for 64 readers, and for 16 of one name. One more is refused, until one leaves.
func TestReadersAreBounded(t *testing.T) {
	url := serve(t, newPage(t, newLimiter(t, core.Options{}), console.Options{}))
	refused := func(name string) {
		t.Helper()
		if more := readAs(t, name, url); more.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("one more reader of the name %s gets status %d", name, more.StatusCode)
		}
	}
	var readers []*reader
	for _, name := range []string{"alice", "bob", "carol", "dave"} {
		for i := range 16 {
			r := readAs(t, name, url)
			if _, ok := r.event(); !ok {
				t.Fatalf("reader %d of the name %s gets no event: %s", i, name, r.Status)
			}
			readers = append(readers, r)
		}
		refused(name)
	}
	refused("erin")
	readers[7].leave() // alice's
	for {              // until the handler has noticed
		if again := readAs(t, "alice", url); again.StatusCode == http.StatusOK {
			break
		}
	}
	refused("alice")
}

// A stream ends by itself, so that rights are checked again.
func TestStreamsEnd(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	page.EndStreamsAfter(time.Millisecond)
	live := read(t, serve(t, page))
	if _, ok := live.event(); !ok {
		t.Error("the stream has no event")
	}
	if _, ok := live.event(); ok {
		t.Error("the stream goes on")
	}
}

// Close ends all streams, and the page begins no others.
func TestCloseEndsTheStreams(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	url := serve(t, page)
	live := read(t, url)
	live.event()
	page.Close()
	for {
		if _, ok := live.event(); !ok {
			break
		}
	}
	page.Close() // again
	after := read(t, url)
	after.event() // at most one
	if _, ok := after.event(); ok {
		t.Error("a stream of a closed page goes on")
	}
}

// A reply that cannot be flushed is no stream.
func TestNoStreamWithoutFlush(t *testing.T) {
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{})
	live := read(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})))
	if live.StatusCode != http.StatusNotImplemented {
		t.Errorf("status %d", live.StatusCode)
	}
}
