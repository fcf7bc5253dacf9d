package rivals

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// newCaller returns a function that makes one call. Each goroutine has its own.
type newCaller = func() (call func())

// framework is a framework with a handler that does nothing.
type framework struct {
	name  string
	older core.HeaderStyle // of X-RateLimit, with the reset as the framework's own limiter sends it
	bare  func() newCaller
	limit func(*core.Limiter, core.Rule) newCaller // our middleware in front of the handler
	allow func(*core.Check) newCaller              // our check in the handler
}

// ourRule is the rule of our middlewares: the default algorithm, and the caller's address.
var ourRule = core.Rule{Name: "api", Seconds: 60, MaxCount: middlewareMax}

// middlewareMax is the number of calls that a limit on a middleware admits in middlewareWindow.
const (
	middlewareMax    = 1e9
	middlewareWindow = time.Minute
)

// handlersSubject is a subject that only the handler knows.
const handlersSubject = "user:alice"

// limitsOf returns what is measured for a framework: the handler alone, our middlewares, and the
// others.
func limitsOf(f framework, others ...Middleware) []Middleware {
	limit := func(limiter *core.Limiter) newCaller { return f.limit(limiter, ourRule) }
	return append([]Middleware{
		unlimited(f.name, f.bare),
		ours(f.name, Ours, 0, limit), ours(f.name, OursXRateLimit, f.older, limit), ours(f.name, OursNoHeaders, core.NoHeaders, limit),
		ours(f.name, InHandler, 0, func(limiter *core.Limiter) newCaller { return f.allow(limiter.MustCheck(ourRule)) }),
	}, others...)
}

// ours is our limit, with headers in this style.
func ours(framework, name string, headers core.HeaderStyle, open func(*core.Limiter) newCaller) Middleware {
	like := name
	if name == InHandler {
		like = Ours
	}
	return Middleware{framework, name, like, func() (newCaller, func()) {
		limiter := must(core.New(core.Options{Logger: Silent, Headers: headers}))
		return open(limiter), limiter.Close
	}}
}

// unlimited is a handler without a limit.
func unlimited(framework string, open func() newCaller) Middleware {
	return limited(framework, None, "", open)
}

// limited returns a middleware whose limiter needs no closing. It sends the same headers as our
// middleware named like.
func limited(framework, name, like string, open func() newCaller) Middleware {
	return Middleware{framework, name, like, func() (newCaller, func()) { return open(), func() {} }}
}

var netHTTP = framework{
	"net/http", core.HeadersXRateLimit,
	func() newCaller { return httpCaller(http.HandlerFunc(nothing)) },
	func(limiter *core.Limiter, rule core.Rule) newCaller {
		return httpCaller(nethttplimit.New(limiter, rule)(http.HandlerFunc(nothing)))
	},
	func(check *core.Check) newCaller {
		return httpCaller(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			nethttplimit.Allow(w, r, check, handlersSubject)
		}))
	},
}

var ginFramework = framework{
	"gin", core.HeadersXRateLimit,
	func() newCaller { return ginWith() },
	func(limiter *core.Limiter, rule core.Rule) newCaller { return ginWith(ginlimit.New(limiter, rule)) },
	func(check *core.Check) newCaller {
		return ginWith(func(c *gin.Context) { ginlimit.Allow(c, check, handlersSubject) })
	},
}

var echoFramework = framework{
	"echo", core.HeadersXRateLimit,
	func() newCaller { return echoWith() },
	func(limiter *core.Limiter, rule core.Rule) newCaller { return echoWith(echolimit.New(limiter, rule)) },
	func(check *core.Check) newCaller {
		return echoWith(func(echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				echolimit.Allow(c, check, handlersSubject)
				return nil
			}
		})
	},
}

var fiberFramework = framework{
	"fiber", core.HeadersXRateLimitDelta,
	func() newCaller { return fiberWith() },
	func(limiter *core.Limiter, rule core.Rule) newCaller { return fiberWith(fiberlimit.New(limiter, rule)) },
	func(check *core.Check) newCaller {
		return fiberWith(func(c *fiber.Ctx) error {
			fiberlimit.Allow(c, check, handlersSubject)
			return nil
		})
	},
}

var (
	bareFastHTTP = unlimited("fasthttp", func() newCaller { return fastCaller(func(*fasthttp.RequestCtx) {}) })
	bareGRPC     = unlimited("gRPC", func() newCaller {
		return grpcCaller(func(ctx context.Context, handler grpc.UnaryHandler) { _, _ = handler(ctx, nil) })
	})
	ourGRPC = ours("gRPC", Ours, 0, func(limiter *core.Limiter) newCaller {
		limit := grpclimit.UnaryServerInterceptor(limiter, ourRule)
		return grpcCaller(func(ctx context.Context, handler grpc.UnaryHandler) {
			_, _ = limit(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/shop/list"}, handler)
		})
	})
)

func ginWith(middlewares ...gin.HandlerFunc) newCaller {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/list", append(middlewares, func(*gin.Context) {})...)
	return httpCaller(router)
}

func echoWith(middlewares ...echo.MiddlewareFunc) newCaller {
	router := echo.New()
	router.GET("/list", func(echo.Context) error { return nil }, middlewares...)
	return httpCaller(router)
}

func fiberWith(middlewares ...fiber.Handler) newCaller {
	app := fiber.New()
	app.Get("/list", append(middlewares, func(*fiber.Ctx) error { return nil })...)
	return fastCaller(app.Handler())
}
