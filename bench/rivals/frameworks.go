package rivals

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
)

// The frameworks, each with a handler that does nothing and the middleware in front of it.

// unlimited is a handler without a limit.
func unlimited(framework string, newCaller func() func() func()) Middleware {
	return limited(framework, None, "", newCaller)
}

// limited returns a middleware whose limiter needs no closing. It sends the same headers as like,
// which is one of ours.
func limited(framework, name, like string, newCaller func() func() func()) Middleware {
	return Middleware{framework, name, like, func() (func() func(), func()) { return newCaller(), func() {} }}
}

var (
	bareNetHTTP  = unlimited("net/http", func() func() func() { return httpCaller(http.HandlerFunc(nothing)) })
	bareGin      = unlimited("gin", func() func() func() { return httpCaller(ginWith(nil)) })
	bareEcho     = unlimited("echo", func() func() func() { return httpCaller(echoWith(nil)) })
	bareFiber    = unlimited("fiber", func() func() func() { return fastCaller(fiberWith(nil)) })
	bareFastHTTP = unlimited("fasthttp", func() func() func() { return fastCaller(func(*fasthttp.RequestCtx) {}) })
	bareGRPC     = unlimited("gRPC", func() func() func() {
		return grpcCaller(func(ctx context.Context, handler grpc.UnaryHandler) { _, _ = handler(ctx, nil) })
	})
)

func ginWith(middlewares gin.HandlersChain) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/list", append(middlewares, func(*gin.Context) {})...)
	return router
}

func echoWith(middlewares []echo.MiddlewareFunc) http.Handler {
	router := echo.New()
	router.GET("/list", func(echo.Context) error { return nil }, middlewares...)
	return router
}

func fiberWith(middlewares []fiber.Handler) fasthttp.RequestHandler {
	app := fiber.New()
	app.Get("/list", append(middlewares, func(*fiber.Ctx) error { return nil })...)
	return app.Handler()
}
