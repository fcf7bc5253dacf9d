package rivals

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// The callers of a handler. Each goroutine has its own request and writer, and reuses them for each
// call.

// peerAddr is the caller. One is enough, because the limits are large.
var peerAddr = &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 1234}

func nothing(http.ResponseWriter, *http.Request) {}

// httpCaller makes callers of a net/http handler.
func httpCaller(h http.Handler) newCaller {
	return func() func() {
		r := httptest.NewRequest("GET", "/list", nil)
		r.RemoteAddr = peerAddr.String()
		w := &noWriter{header: make(http.Header)}
		return func() {
			clear(w.header)
			w.status = 0
			h.ServeHTTP(w, r)
			w.check()
		}
	}
}

// noWriter keeps only the status of a response.
type noWriter struct {
	header http.Header
	status int
}

func (w *noWriter) Header() http.Header         { return w.header }
func (w *noWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *noWriter) WriteHeader(status int)      { w.status = status }

// check panics if the call was refused, because its time would be meaningless. It accepts status
// 500, with which throttled answers if several goroutines change a key at once.
func (w *noWriter) check() { mustServe(w.status) }

func mustServe(status int) {
	if status == http.StatusTooManyRequests {
		panic("a call that the limit allows was refused")
	}
}

// fastCaller makes callers of a fasthttp handler.
func fastCaller(h fasthttp.RequestHandler) newCaller {
	return func() func() {
		call := new(fasthttp.RequestCtx)
		call.Request.SetRequestURI("/list")
		call.SetRemoteAddr(peerAddr)
		return func() {
			call.Response.Reset()
			h(call)
			mustServe(call.Response.StatusCode())
		}
	}
}

// grpcCaller makes callers of an interceptor without a server.
func grpcCaller(intercept func(context.Context, grpc.UnaryHandler)) newCaller {
	handler := func(context.Context, any) (any, error) { return nil, nil }
	return func() func() {
		ctx := peer.NewContext(background, &peer.Peer{Addr: peerAddr})
		ctx = grpc.NewContextWithServerTransportStream(ctx, noStream{})
		return func() { intercept(ctx, handler) }
	}
}

// noStream discards headers and trailers.
type noStream struct{}

func (noStream) Method() string               { return "/shop/list" }
func (noStream) SetHeader(metadata.MD) error  { return nil }
func (noStream) SendHeader(metadata.MD) error { return nil }
func (noStream) SetTrailer(metadata.MD) error { return nil }
