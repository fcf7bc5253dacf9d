package nethttplimit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/handlercost"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

var (
	counted = core.Rule{Name: "counted", Seconds: 600, MaxCount: 1000, Count: func(status int) bool { return status != 200 }}
	slots   = core.Rule{Name: "slots", Limit: core.Limit{Max: 1000, Window: 600 * time.Second, Algorithm: core.Concurrency}}
	plain   = core.Rule{Name: "plain", Seconds: 600, MaxCount: 1000}
)

// TestWriterIsUntouched checks that the handler gets the server's own writer unless a rule may have
// to give something back.
func TestWriterIsUntouched(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	for _, test := range []struct {
		rules []core.Rule
		same  bool
	}{
		{[]core.Rule{plain}, true}, {[]core.Rule{slots}, false}, {[]core.Rule{plain, slots}, false},
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

// TestWriterCanDoTheSame checks that the writer of a counted call can do what the server's writer
// can, and nothing else. It may have a method that then says so, or that does the same.
func TestWriterCanDoTheSame(t *testing.T) {
	can := func(w http.ResponseWriter) string {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		var push error = http.ErrNotSupported
		if pusher, ok := w.(http.Pusher); ok {
			push = pusher.Push("/", nil)
		}
		notifies := false
		if notifier, ok := w.(closeNotifier); ok {
			notifies = notifier.CloseNotify() != nil
		}
		read, _ := io.Copy(w, onlyReader{strings.NewReader("read")})
		written, _ := io.WriteString(w, "written")
		control := http.NewResponseController(w)
		return fmt.Sprint(flushes, hijacks, push, notifies, read, written, control.SetReadDeadline(time.Now().Add(time.Minute)),
			control.SetWriteDeadline(time.Now().Add(time.Minute)), control.EnableFullDuplex(), control.Flush())
	}
	got := make(chan string, 2)
	note := func(w http.ResponseWriter, _ *http.Request) { got <- can(w) }
	mux := http.NewServeMux()
	mux.HandleFunc("/bare", note)
	mux.Handle("/counted", nethttplimit.New(limitertest.New(t, core.Options{}), counted)(http.HandlerFunc(note)))
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		server := httptest.NewUnstartedServer(mux)
		server.EnableHTTP2 = version == "HTTP/2.0"
		server.StartTLS()
		for _, path := range []string{"/bare", "/counted"} {
			response, err := server.Client().Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil { // until the handler has returned: closed earlier, its Flush fails
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
	poor := handlercost.NewDiscard()
	for _, w := range []http.ResponseWriter{poor, unwrapping{poor}, httptest.NewRecorder(), unwrapping{httptest.NewRecorder()}, struct {
		*handlercost.Discard
		http.Hijacker
	}{poor, nil}} {
		nethttplimit.New(limitertest.New(t, core.Options{}), counted)(http.HandlerFunc(note)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if bare, counted := can(w), <-got; bare != counted {
			t.Errorf("a counted call can %s, a %T %s", counted, w, bare)
		}
	}
}

// unwrapping is the writer of a middleware that has only Unwrap, the form that net/http recommends.
type unwrapping struct{ w http.ResponseWriter }

func (u unwrapping) Header() http.Header         { return u.w.Header() }
func (u unwrapping) Write(b []byte) (int, error) { return u.w.Write(b) }
func (u unwrapping) WriteHeader(status int)      { u.w.WriteHeader(status) }
func (u unwrapping) Unwrap() http.ResponseWriter { return u.w }

// TestControllerBehindUnwrap checks that Count receives what a handler sent by http.ResponseController
// behind a middleware whose writer has only Unwrap, also through a second limiter.
func TestControllerBehindUnwrap(t *testing.T) {
	for name, handle := range map[string]func(http.ResponseWriter) error{
		"a flush, then 500": func(w http.ResponseWriter) error {
			err := http.NewResponseController(w).Flush()
			w.WriteHeader(500)
			return err
		},
		"a connection taken over, then 500": func(w http.ResponseWriter) error {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return err
			}
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			w.WriteHeader(500)
			return errors.Join(err, conn.Close())
		},
	} {
		received := make(chan int, 2)
		count := func(status int) bool { received <- status; return true }
		limiter := limitertest.New(t, core.Options{})
		limit := func(name string, next http.Handler) http.Handler {
			return nethttplimit.New(limiter, core.Rule{Name: name, Seconds: 60, Count: count})(next)
		}
		ended := make(chan error, 1)
		limited := limit("outer", limit("inner", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { ended <- handle(w) })))
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { limited.ServeHTTP(unwrapping{w}, r) }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.Start()
		response, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if err := <-ended; err != nil || response.StatusCode != 200 {
			t.Errorf("%s: %v, status %d", name, err, response.StatusCode)
		}
		if inner, outer := <-received, <-received; inner != 200 || outer != 200 {
			t.Errorf("%s: Count received %d inside and %d outside, want 200", name, inner, outer)
		}
		server.Close()
	}
}

// closeNotifier is http.CloseNotifier, which is deprecated.
type closeNotifier interface{ CloseNotify() <-chan bool }

// onlyReader hides the other methods of a reader.
type onlyReader struct{ io.Reader }

var (
	long = bytes.Repeat([]byte("0123456789"), 1000)
	text = string(long)
)
