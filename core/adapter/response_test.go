package adapter_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// leftWriter is a server's writer whose caller has left, as that of HTTP/2 is: it sends the header and
// no body.
type leftWriter struct{ *httptest.ResponseRecorder }

func (w leftWriter) Write([]byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return 0, io.ErrClosedPipe
}

// panickingReader panics when it is read.
type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("the source is gone") }

// A copy that fails has the status that was sent, also if a handler then tries to send another.
func TestStatusOfACopyThatFails(t *testing.T) {
	some := strings.NewReader("some")
	for name, test := range map[string]struct {
		server http.ResponseWriter
		from   io.Reader
		want   int
	}{
		"the caller has left":              {leftWriter{httptest.NewRecorder()}, strings.NewReader("all"), 200},
		"the source fails":                 {httptest.NewRecorder(), io.MultiReader(some, iotest.ErrReader(io.ErrUnexpectedEOF)), 200},
		"the source fails at once":         {httptest.NewRecorder(), iotest.ErrReader(io.ErrUnexpectedEOF), 502},
		"the source panics":                {httptest.NewRecorder(), io.MultiReader(strings.NewReader("some"), panickingReader{}), 200},
		"the source panics at once":        {httptest.NewRecorder(), panickingReader{}, 502},
		"the caller left, with a length":   {sized(leftWriter{httptest.NewRecorder()}), strings.NewReader("all"), 200},
		"the source panics, with a length": {sized(httptest.NewRecorder()), io.MultiReader(strings.NewReader("so"), panickingReader{}), 200},
	} {
		w, reply := adapter.Follow(test.server, true)
		if err := copyAll(w, test.from); err == nil {
			t.Errorf("%s: the copy did not fail", name)
		}
		w.WriteHeader(http.StatusBadGateway)
		if got := reply.Status(); got != test.want {
			t.Errorf("%s: the status is %d, want %d", name, got, test.want)
		}
	}
}

// hijackable is a server's writer whose Hijack returns err.
type hijackable struct {
	*httptest.ResponseRecorder
	err error
}

func (w hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, w.err }

// unwrapping is the writer of a middleware that has only Unwrap.
type unwrapping struct{ w http.ResponseWriter }

func (u unwrapping) Header() http.Header         { return u.w.Header() }
func (u unwrapping) Write(b []byte) (int, error) { return u.w.Write(b) }
func (u unwrapping) WriteHeader(status int)      { u.w.WriteHeader(status) }
func (u unwrapping) Unwrap() http.ResponseWriter { return u.w }

// A connection that was not taken over has no status yet, so a handler can still send one.
func TestStatusOfAHijack(t *testing.T) {
	for name, test := range map[string]struct {
		before int // sent before the Hijack, if not 0
		err    error
		want   int
	}{
		"taken over":           {0, nil, 200},
		"switched":             {101, nil, 101},
		"refused":              {0, http.ErrNotSupported, 500},
		"refused after a hint": {103, http.ErrNotSupported, 500},
		"refused after a 404":  {404, http.ErrNotSupported, 404},
	} {
		server := hijackable{httptest.NewRecorder(), test.err}
		for _, outer := range []http.ResponseWriter{server, unwrapping{server}} {
			w, reply := adapter.Follow(outer, true)
			if test.before != 0 {
				w.WriteHeader(test.before)
			}
			if _, _, err := http.NewResponseController(w).Hijack(); err != test.err {
				t.Errorf("%s: Hijack returned %v, want %v", name, err, test.err)
			}
			w.WriteHeader(http.StatusInternalServerError)
			if got := reply.Status(); got != test.want {
				t.Errorf("%s, through a %T: the status is %d, want %d", name, outer, got, test.want)
			}
		}
	}
}

// Code that follows Unwrap in search of what the server can do finds nothing more. Otherwise a WebSocket
// library would reply 101 before it fails, and a stream of events would begin that nothing can flush.
func TestNothingMoreBehindUnwrap(t *testing.T) {
	plain := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	for _, server := range []http.ResponseWriter{plain, unwrapping{plain}, leftWriter{httptest.NewRecorder()}, unwrapping{leftWriter{httptest.NewRecorder()}}} {
		_, canFlush := server.(http.Flusher)
		if behind, ok := server.(unwrapping); ok {
			_, canFlush = behind.w.(http.Flusher)
		}
		w, _ := adapter.Follow(server, true)
		flushes, unwraps := false, true
		for unwraps {
			if _, hijacks := w.(http.Hijacker); hijacks {
				t.Errorf("%T: a %T is an http.Hijacker", server, w)
			}
			_, flushesSafely := w.(interface{ FlushError() error })
			_, flushesAnyhow := w.(http.Flusher)
			flushes = flushes || flushesSafely || flushesAnyhow
			var of interface{ Unwrap() http.ResponseWriter }
			if of, unwraps = w.(interface{ Unwrap() http.ResponseWriter }); unwraps {
				w = of.Unwrap()
			}
		}
		if flushes != canFlush {
			t.Errorf("%T: it flushes: %t, want %t", server, flushes, canFlush)
		}
	}
}

// A flush that is not supported sends nothing.
func TestStatusOfAFlush(t *testing.T) {
	plain := struct{ http.ResponseWriter }{httptest.NewRecorder()}
	for _, test := range []struct {
		server http.ResponseWriter
		want   int
	}{{httptest.NewRecorder(), 200}, {unwrapping{httptest.NewRecorder()}, 200}, {plain, 500}, {unwrapping{plain}, 500}} {
		w, reply := adapter.Follow(test.server, true)
		_ = http.NewResponseController(w).Flush()
		w.WriteHeader(http.StatusInternalServerError)
		if got := reply.Status(); got != test.want {
			t.Errorf("%T: the status is %d, want %d", test.server, got, test.want)
		}
		_, _ = io.WriteString(sized(w), "abc")
		if err := http.NewResponseController(w).Flush(); (err == nil) == (reply.Held() == 1) {
			t.Errorf("%T: after a flush with %v, %d bytes are held back", test.server, err, reply.Held())
		}
	}
}

// After Finish, nothing is held back any more: nobody calls it again.
func TestNothingIsHeldAfterFinish(t *testing.T) {
	for name, before := range map[string]string{"no byte": "", "a byte": "a", "two bytes": "ab", "the whole body": "abc"} {
		server := httptest.NewRecorder()
		w, reply := adapter.Follow(server, true)
		_, _ = io.WriteString(sized(w), before)
		reply.Finish()
		_, _ = io.WriteString(w, "abc"[len(before):])
		if got := server.Body.String(); got != "abc" {
			t.Errorf("%s before Finish: the client has %q", name, got)
		}
	}
}

// A flush sends what was written, and the last byte of what follows is still held back.
func TestLastByteIsHeldAfterAFlush(t *testing.T) {
	server := httptest.NewRecorder()
	w, reply := adapter.Follow(server, true)
	_, _ = io.WriteString(sized(w), "ab")
	w.(http.Flusher).Flush()
	_, _ = io.WriteString(w, "c")
	if got := server.Body.String(); got != "ab" || reply.Held() != 1 {
		t.Errorf("before Finish, the client has %q, and %d bytes are held back", got, reply.Held())
	}
	reply.Finish()
	if got := server.Body.String(); got != "abc" {
		t.Errorf("the client has %q", got)
	}
}

// sized declares that the body has three bytes.
func sized(w http.ResponseWriter) http.ResponseWriter {
	w.Header().Set("Content-Length", "3")
	return w
}

// copyAll copies by nothing but Read, and returns a panic as an error.
func copyAll(w io.Writer, from io.Reader) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New(v.(string))
		}
	}()
	_, err = io.Copy(w, struct{ io.Reader }{from})
	return err
}
