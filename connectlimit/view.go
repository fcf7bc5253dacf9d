package connectlimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"connectrpc.com/connect"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// call is what a connect.CallInfo and a connect.StreamingHandlerConn have in common.
type call interface {
	Spec() connect.Spec
	Peer() connect.Peer
	RequestHeader() http.Header
	ResponseHeader() http.Header
	ResponseTrailer() http.Header
}

// callOf returns the call whose handler, or unary interceptor, has this context.
func callOf(ctx context.Context) (call, error) {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return info, nil
	}
	return nil, connect.NewError(connect.CodeInternal, errors.New("connectlimit: the context is not that of a handler"))
}

type view struct {
	ctx  context.Context
	call call
}

func (v view) Context() context.Context    { return v.ctx }
func (v view) Method() string              { return "" }
func (v view) Path() string                { return v.call.Spec().Procedure }
func (v view) Route() string               { return v.call.Spec().Procedure }
func (v view) RemoteAddr() netip.Addr      { return adapter.PeerAddr(v.call.Peer().Addr) }
func (v view) Host() string                { return v.call.RequestHeader().Get("Host") }
func (v view) Header(name string) []string { return v.call.RequestHeader()[name] }
func (v view) Query(string) string         { return "" }
func (v view) Param(string) string         { return "" }
func (v view) Value(key any) any           { return v.ctx.Value(key) }
func (v view) Size() int64                 { return -1 }

// Cookie returns a cookie of the request, which browsers send.
func (v view) Cookie(name string) string {
	cookie, err := (&http.Request{Header: v.call.RequestHeader()}).Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// ResponseHeader returns the headers where the caller sees them as such, and trailers otherwise.
func (v view) ResponseHeader() adapter.HeaderWriter {
	if hasHeader(v.call) {
		return v.call.ResponseHeader()
	}
	return v.call.ResponseTrailer()
}

// hasHeader reports whether the reply is one of HTTP, which is sent when the handler has returned.
func hasHeader(c call) bool {
	return c.Peer().Protocol == connect.ProtocolConnect && c.Spec().StreamType == connect.StreamTypeUnary
}
