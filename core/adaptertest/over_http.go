package adaptertest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
)

// ServeHTTP serves a handler over HTTP/1.1, and logs nothing. It is for Adapter.Serve.
func ServeHTTP(l net.Listener, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}

// HTTPHandling is the part of a Handling that does not concern the adapter, for a framework whose
// handlers read a request and write a reply as those of net/http do.
type HTTPHandling struct {
	Writer  http.ResponseWriter
	Request *http.Request
}

// Context implements Handling.
func (h HTTPHandling) Context() context.Context { return h.Request.Context() }

// Header implements Handling.
func (h HTTPHandling) Header(name string) string { return h.Request.Header.Get(name) }

// Query implements Handling.
func (h HTTPHandling) Query(name string) string { return h.Request.URL.Query().Get(name) }

// Cookie implements Handling.
func (h HTTPHandling) Cookie(name string) string {
	cookie, err := h.Request.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Flush implements Handling.
func (h HTTPHandling) Flush() { h.Writer.(http.Flusher).Flush() }

// Text implements Handling.
func (h HTTPHandling) Text(text string) {
	h.Writer.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.WriteString(h.Writer, text)
}

// Reply implements Handling.
func (h HTTPHandling) Reply(status int) { http.Error(h.Writer, "replied", status) }
