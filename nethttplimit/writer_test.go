package nethttplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

func newLimiter(t *testing.T) *core.Limiter {
	t.Helper()
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
}

var (
	counted = core.Rule{Name: "counted", Seconds: 600, MaxCount: 1000, Count: func(status int) bool { return status != 200 }}
	slots   = core.Rule{Name: "slots", Seconds: 600, MaxCount: 1000, Algorithm: core.Concurrency}
	plain   = core.Rule{Name: "plain", Seconds: 600, MaxCount: 1000}
)

// TestWriterIsUntouched holds that only a rule with Count costs the handler its writer.
func TestWriterIsUntouched(t *testing.T) {
	limiter := newLimiter(t)
	for _, test := range []struct {
		rules []core.Rule
		same  bool
	}{
		{[]core.Rule{plain}, true}, {[]core.Rule{slots}, true}, {[]core.Rule{plain, slots}, true},
		{[]core.Rule{counted}, false}, {[]core.Rule{slots, counted}, false},
	} {
		w := httptest.NewRecorder()
		nethttplimit.New(limiter, test.rules...)(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
			if same := got == http.ResponseWriter(w); same != test.same {
				t.Errorf("%s: the handler got the server's own writer: %v, want %v", test.rules[0].Name, same, test.same)
			}
		})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
}

// TestWriterCanDoTheSame holds that the writer of a counted call can do what the server's can, and pretends nothing else.
func TestWriterCanDoTheSame(t *testing.T) {
	can := func(w http.ResponseWriter) string {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		_, reads := w.(io.ReaderFrom)
		_, texts := w.(io.StringWriter)
		_, pushes := w.(http.Pusher)
		control := http.NewResponseController(w)
		return fmt.Sprint(flushes, hijacks, reads, texts, pushes, control.SetReadDeadline(time.Now().Add(time.Minute)),
			control.SetWriteDeadline(time.Now().Add(time.Minute)), control.EnableFullDuplex())
	}
	got := make(chan string, 2)
	note := func(w http.ResponseWriter, _ *http.Request) { got <- can(w) }
	mux := http.NewServeMux()
	mux.HandleFunc("/bare", note)
	mux.Handle("/counted", nethttplimit.New(newLimiter(t), counted)(http.HandlerFunc(note)))
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		server := httptest.NewUnstartedServer(mux)
		server.EnableHTTP2 = version == "HTTP/2.0"
		server.StartTLS()
		for _, path := range []string{"/bare", "/counted"} {
			response, err := server.Client().Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.Proto != version {
				t.Fatalf("spoke %s, want %s", response.Proto, version)
			}
		}
		if bare, counted := <-got, <-got; bare != counted {
			t.Errorf("%s: a counted call can %s, the server's own %s", version, counted, bare)
		}
		server.Close()
	}
	poor := &discard{header: make(http.Header)}
	nethttplimit.New(newLimiter(t), counted)(http.HandlerFunc(note)).ServeHTTP(poor, httptest.NewRequest("GET", "/", nil))
	if bare, counted := can(poor), <-got; bare != counted {
		t.Errorf("a counted call can %s, a poor writer %s", counted, bare)
	}
}

// TestEventsAreSentAtOnce holds that a stream of events is one, under a rule with Count and a slot, which it holds to its end.
func TestEventsAreSentAtOnce(t *testing.T) {
	limiter, next := newLimiter(t), make(chan struct{})
	one := slots
	one.MaxCount = 1
	server := httptest.NewServer(nethttplimit.New(limiter, counted, one)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
	})))
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	for i := range 3 { // each is read before the handler is told to go on
		if want := fmt.Sprintf("data: %d", i); !events.Scan() || events.Text() != want {
			t.Fatalf("read %q, want %q: %v", events.Text(), want, events.Err())
		}
		refused, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = refused.Body.Close()
		if refused.StatusCode != 429 {
			t.Fatalf("a second stream beside the first: status %d", refused.StatusCode)
		}
		next <- struct{}{}
	}
	if events.Scan() {
		t.Errorf("read %q, want the end", events.Text())
	}
	d, err := limiter.Peek(t.Context(), "counted", "ip:127.0.0.1", core.Limit{Max: 1000, Window: 10 * time.Minute})
	if err != nil || d.Remaining != 1000 {
		t.Errorf("%d are left: %v; a stream that ended well does not count", d.Remaining, err)
	}
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
