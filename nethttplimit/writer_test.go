package nethttplimit_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
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
	slots   = core.Rule{Name: "slots", Limit: core.Limit{Max: 1000, Window: 600 * time.Second, Algorithm: core.Concurrency}}
	plain   = core.Rule{Name: "plain", Seconds: 600, MaxCount: 1000}
)

// TestWriterIsUntouched checks that the handler gets the server's own writer unless a rule may have
// to give something back.
func TestWriterIsUntouched(t *testing.T) {
	limiter := newLimiter(t)
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
	for _, w := range []http.ResponseWriter{poor, httptest.NewRecorder(), struct {
		*discard
		http.Hijacker
	}{poor, nil}} {
		nethttplimit.New(newLimiter(t), counted)(http.HandlerFunc(note)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if bare, counted := can(w), <-got; bare != counted {
			t.Errorf("a counted call can %s, a %T %s", counted, w, bare)
		}
	}
}

// closeNotifier is http.CloseNotifier, which is deprecated.
type closeNotifier interface{ CloseNotify() <-chan bool }

// onlyReader hides the other methods of a reader.
type onlyReader struct{ io.Reader }

// TestEventsAreSentAtOnce checks that events of a stream are sent one by one, under a rule with
// Count and a slot, which the stream holds to its end.
func TestEventsAreSentAtOnce(t *testing.T) {
	limiter, next := newLimiter(t), make(chan struct{})
	one := slots
	one.Limit.Max = 1
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
	for i := range 3 { // each is read before the handler may go on
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
	d, err := limiter.MustCounter("counted", core.Limit{Max: 1000, Window: 10 * time.Minute}).Peek(t.Context(), "ip:127.0.0.1")
	if err != nil || d.Remaining != 1000 {
		t.Errorf("%d are left: %v; a stream that ended well does not count", d.Remaining, err)
	}
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// writings are ways to write a body. Each reports the results of its writer's methods.
var writings = map[string]func(w http.ResponseWriter, record func(...any)){
	"at once": func(w http.ResponseWriter, record func(...any)) { declare(w, 9000); record(w.Write(long[:9000])) },
	"a text": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 9000)
		record(io.WriteString(w, text[:9000]))
	},
	"one byte":          func(w http.ResponseWriter, record func(...any)) { declare(w, 1); record(w.Write(long[:1])) },
	"nothing":           func(w http.ResponseWriter, record func(...any)) { declare(w, 0); record(w.Write(nil)) },
	"byte by byte":      func(w http.ResponseWriter, record func(...any)) { declare(w, 3); each(w, 3, record) },
	"one byte too many": func(w http.ResponseWriter, record func(...any)) { declare(w, 3); each(w, 4, record) },
	"too much at once":  func(w http.ResponseWriter, record func(...any)) { declare(w, 5000); record(w.Write(long[:5001])) },
	"too much in the end": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 5001)
		record(w.Write(long[:5000]))
		record(w.Write(long[:2]))
	},
	"no length": func(w http.ResponseWriter, record func(...any)) { record(w.Write(long[:5000])) },
	"a wrong length": func(w http.ResponseWriter, record func(...any)) {
		w.Header().Set("Content-Length", "x")
		record(w.Write(long[:5000]))
	},
	"a status before": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 7)
		w.WriteHeader(201)
		record(w.Write(long[:7]))
	},
	"a length after the status": func(w http.ResponseWriter, record func(...any)) {
		w.WriteHeader(200)
		declare(w, 5) // too late, so it says nothing
		record(w.Write(long[:5]))
		record(w.Write(long[:5000]))
	},
	"a length after a flush": func(w http.ResponseWriter, record func(...any)) {
		record(http.NewResponseController(w).Flush())
		declare(w, 5)
		record(w.Write(long[:5]))
		record(w.Write(long[:5000]))
	},
	"a length after early hints": func(w http.ResponseWriter, record func(...any)) {
		w.WriteHeader(103)
		declare(w, 5)
		record(w.Write(long[:5]))
		record(w.Write(long[:5000]))
	},
	"a status after": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 1)
		record(w.Write(long[:1]))
		w.WriteHeader(500)
	},
	"304": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 7)
		w.WriteHeader(304)
		record(w.Write(long[:7]))
	},
	"a flush in the end": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 7)
		record(w.Write(long[:7]))
		record(http.NewResponseController(w).Flush())
		record(w.Write(long[:1]))
	},
	"read from a text": func(w http.ResponseWriter, record func(...any)) { declare(w, 9000); record(readFrom(w, 9000)) },
	"read in two halves": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 9000)
		record(readFrom(w, 4000))
		record(readFrom(w, 5000))
	},
	"read all but one byte": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 9000)
		record(readFrom(w, 8999))
		record(readFrom(w, 1))
	},
	"read one byte":         func(w http.ResponseWriter, record func(...any)) { declare(w, 1); record(readFrom(w, 1)) },
	"read without a length": func(w http.ResponseWriter, record func(...any)) { record(readFrom(w, 9000)) },
	"read what breaks off": func(w http.ResponseWriter, record func(...any)) {
		declare(w, 4000)
		n, err := io.Copy(w, io.MultiReader(bytes.NewReader(long[:3990]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		record(n, errors.Is(err, io.ErrUnexpectedEOF)) // its text names the connection
		record(w.Write(long[:10]))
	},
	"a limited reader": func(w http.ResponseWriter, record func(...any)) {
		from := &io.LimitedReader{R: bytes.NewReader(long), N: 9000}
		declare(w, 9000)
		record(w.(io.ReaderFrom).ReadFrom(from))
		record(from.N)
	},
	"a file": func(w http.ResponseWriter, record func(...any)) {
		http.ServeFile(w, httptest.NewRequest("GET", "/", nil), "writer_test.go")
	},
	"part of a file": func(w http.ResponseWriter, record func(...any)) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Range", "bytes=100-5099")
		http.ServeFile(w, r, "writer_test.go")
	},
}

var (
	long = bytes.Repeat([]byte("0123456789"), 1000)
	text = string(long)
)

func declare(w http.ResponseWriter, length int) {
	w.Header().Set("Content-Length", strconv.Itoa(length))
}

func each(w http.ResponseWriter, bytes int, record func(...any)) {
	for i := range bytes {
		record(w.Write(long[i : i+1]))
	}
}

// readFrom makes the writer read from a source that has no WriteTo.
func readFrom(w http.ResponseWriter, bytes int64) (int64, error) {
	return w.(io.ReaderFrom).ReadFrom(iotest.OneByteReader(io.LimitReader(strings.NewReader(text), bytes)))
}

// TestWatchedResponsesAreTheSame checks that neither the client nor the handler can tell a watched
// response from the server's own.
func TestWatchedResponsesAreTheSame(t *testing.T) {
	limited := nethttplimit.New(newLimiter(t), counted, slots)
	for name, write := range writings {
		for _, method := range []string{"GET", "HEAD"} {
			got := make(map[bool]string)
			for _, watched := range []bool{false, true} {
				said := make(chan string, 20)
				var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					write(w, func(values ...any) { said <- fmt.Sprint(values...) })
				})
				if watched {
					handler = limited(handler)
				}
				got[watched] = exchange(t, method, handler) + "\n"
				close(said)
				for text := range said {
					got[watched] += text + "; "
				}
			}
			if got[true] != got[false] {
				t.Errorf("%s %s: %s\nwant %s", method, name, got[true], got[false])
			}
		}
	}
}

// exchange returns all that the server sends to a client, without the headers of a limiter and the
// date.
func exchange(t *testing.T, method string, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: service.test\r\nConnection: close\r\n\r\n", method)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(Ratelimit(-Policy)?|Date|Last-Modified): [^\n]*\n`).ReplaceAllString(string(all), "")
}

// TestLastByteIsHeldBack checks that a body arrives as it is written, except for the last byte of
// one whose length was declared. That byte arrives when the handler has returned, or flushes.
func TestLastByteIsHeldBack(t *testing.T) {
	leave := make(chan bool)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		declare(w, len(long))
		_, _ = w.Write(long)
		for flush := range leave {
			if !flush {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	})
	server := httptest.NewServer(nethttplimit.New(newLimiter(t), slots)(handler))
	defer server.Close()
	for _, flush := range []bool{false, true} {
		response, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(response.Body, make([]byte, len(long)-1)); err != nil {
			t.Fatalf("all but the last byte: %v", err)
		}
		end := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(response.Body, make([]byte, 1))
			end <- err
		}()
		select {
		case err := <-end:
			t.Errorf("the end came before the handler returned: %v", err)
		case <-time.After(10 * time.Millisecond): // too little shows nothing wrong
		}
		leave <- flush
		if err := <-end; err != nil {
			t.Errorf("the end: %v", err)
		}
		if flush {
			leave <- false
		}
		_ = response.Body.Close()
	}
}
