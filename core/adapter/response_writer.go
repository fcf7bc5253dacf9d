package adapter

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer is what the handler writes to. Its methods are those that do no harm if the server's writer
// has none: they then write the usual way, or say that they are not supported. The others would
// double the number of types each. Deadlines are set on the server's writer itself, which
// http.ResponseController finds by Unwrap.
type writer struct{ s *Response }

func (w writer) Header() http.Header { return w.s.w.Header() }

// Unwrap lets http.ResponseController find the server's writer. If the writer of a middleware in between
// has only Unwrap, the controller finds one before it that notes a flush and a Hijack, as far as the
// server's can do them.
func (w writer) Unwrap() http.ResponseWriter {
	u, f, h := unwrapped{w}, errorFlusher(w), hijacker(w)
	switch flushes, hijacks := onlyBehind[http.Flusher](w.s.w), onlyBehind[http.Hijacker](w.s.w); {
	case flushes && hijacks:
		return unwrappedFull{u, f, h}
	case flushes:
		return unwrappedFlusher{u, f}
	case hijacks:
		return unwrappedHijacker{u, h}
	default:
		return w.s.w
	}
}

// WriteHeader implements http.ResponseWriter. The server panics if the code is not a status.
func (w writer) WriteHeader(code int) { w.s.w.WriteHeader(code); w.s.sent(code) }

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	w.s.sent(http.StatusOK)
	return writeTo(w.s, b, w.s.w.Write)
}

// WriteString implements io.StringWriter.
func (w writer) WriteString(text string) (int, error) {
	w.s.sent(http.StatusOK)
	return writeTo(w.s, text, w.s.writeString)
}

// ReadFrom implements io.ReaderFrom. If the server's writer does not, as that of HTTP/2, it writes each
// part by Write, which notes the status even if nothing arrives.
func (w writer) ReadFrom(from io.Reader) (n int64, err error) {
	server, ok := w.s.w.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{w}, from)
	}
	// If nothing was read, nothing was sent, and a handler may still make a 502 of it.
	if n, err = w.s.readFrom(from, server.ReadFrom); n > 0 {
		w.s.sent(http.StatusOK)
	}
	return n, err
}

// Push implements http.Pusher.
func (w writer) Push(target string, options *http.PushOptions) error {
	if pusher, ok := w.s.w.(http.Pusher); ok {
		return pusher.Push(target, options)
	}
	return http.ErrNotSupported
}

// CloseNotify implements http.CloseNotifier, for old handlers.
func (w writer) CloseNotify() <-chan bool {
	if notifier, ok := w.s.w.(interface{ CloseNotify() <-chan bool }); ok {
		return notifier.CloseNotify()
	}
	return nil
}

// flusher and hijacker have the methods by which handlers find out what their server can do, and
// errorFlusher that by which http.ResponseController does.
type (
	errorFlusher struct{ s *Response }
	flusher      struct{ errorFlusher }
	hijacker     struct{ s *Response }
)

// FlushError flushes for http.ResponseController.
func (f errorFlusher) FlushError() error {
	f.s.sent(http.StatusOK)
	f.s.release()
	return http.NewResponseController(f.s.w).Flush()
}

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.FlushError() }

// Hijack implements http.Hijacker. If it fails, as over HTTP/2, nothing was sent, and a handler may
// still make a 500 of it.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.s.release()
	conn, buffered, err := http.NewResponseController(h.s.w).Hijack()
	if err == nil {
		h.s.sent(http.StatusOK)
	}
	return conn, buffered, err
}

type (
	flushingWriter struct {
		writer
		flusher
	}
	hijackingWriter struct {
		writer
		hijacker
	}
	fullWriter struct {
		writer
		flusher
		hijacker
	}
)

// unwrapped is between a writer and that of a middleware which has only Unwrap. The types around it have
// what the server's writer behind that can do.
type (
	unwrapped        struct{ writer }
	unwrappedFlusher struct {
		unwrapped
		errorFlusher
	}
	unwrappedHijacker struct {
		unwrapped
		hijacker
	}
	unwrappedFull struct {
		unwrapped
		errorFlusher
		hijacker
	}
)

func (u unwrapped) Unwrap() http.ResponseWriter { return u.s.w }

// onlyBehind reports whether a writer is no T, and http.ResponseController finds one behind it.
func onlyBehind[T any](w http.ResponseWriter) bool {
	for itself := true; ; itself = false {
		if _, ok := w.(T); ok {
			return !itself
		}
		of, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = of.Unwrap()
	}
}

// writer returns a writer that flushes, and can be taken over, if the server's writer does.
func (s *Response) writer() http.ResponseWriter {
	_, flushes := s.w.(http.Flusher)
	_, hijacks := s.w.(http.Hijacker)
	switch w, f, h := (writer{s}), (flusher{errorFlusher{s}}), (hijacker{s}); {
	case flushes && hijacks:
		return fullWriter{w, f, h}
	case flushes:
		return flushingWriter{w, f}
	case hijacks:
		return hijackingWriter{w, h}
	default:
		return w
	}
}

// writeString writes a text to the server's writer.
func (s *Response) writeString(text string) (int, error) { return io.WriteString(s.w, text) }
