package faults_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/frameworks"
)

// framework is one of the five frameworks, with the function that serves an app with it.
type framework struct {
	name string
	adaptertest.Adapter
}

// unnoticed reports whether a handler's context does not end when its caller leaves.
func (f framework) unnoticed() bool { return f.Cannot[adaptertest.LeavingCallers] != "" }

// connect returns a client whose connections dial opens.
func (f framework) connect(t testing.TB, dial adaptertest.Dial) adaptertest.Client {
	if f.RPC {
		return f.Connect(t, dial)
	}
	return connectHTTP(dial)
}

// usual is the number of bytes of headers that servers usually accept.
const usual = 16 << 10

// everyFramework returns all five, with servers that accept this many bytes of headers.
func everyFramework(room int) []framework {
	gin.SetMode(gin.TestMode)
	bare := func(mux http.Handler) http.Handler { return mux }
	return []framework{
		{"gin", overHTTP(room, func(app adaptertest.App) http.Handler { return frameworks.Gin(app, func(*gin.Engine) {}) })},
		{"echo", overHTTP(room, func(app adaptertest.App) http.Handler { return frameworks.Echo(app) })},
		{"fiber", frameworks.Fiber(fiber.Config{ReadBufferSize: room})},
		{"net/http", overHTTP(room, func(app adaptertest.App) http.Handler { return frameworks.NetHTTP(app, bare) })},
		{"gRPC", frameworks.GRPC(grpc.StreamDesc{}, grpc.MaxHeaderListSize(uint32(room)))},
	}
}

// overHTTP serves a handler by net/http's server, over HTTP/1.1 and HTTP/2.
func overHTTP(room int, handler func(adaptertest.App) http.Handler) adaptertest.Adapter {
	return adaptertest.Adapter{Serve: func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		server := &http.Server{Handler: handler(app), MaxHeaderBytes: room, Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = server.Serve(l) }()
		return func() { _ = server.Close() }
	}}
}
