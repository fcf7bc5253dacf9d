package rivals

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"google.golang.org/grpc"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/fiberlimit"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/grpclimit"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// silent is a logger that keeps our log out of the tables.
var silent = slog.New(slog.DiscardHandler)

// ourLimit returns the limit as a core.Limit, with the algorithm that is part of the name.
func ourLimit(name string, l Limit) core.Limit {
	limit := core.Limit{Max: l.Max, Window: l.Window}
	switch {
	case strings.Contains(name, core.TokenBucket.String()):
		permits, span := l.rate()
		return core.Limit{Max: permits, Window: span}.Bucket(l.Max)
	case strings.Contains(name, core.FixedWindow.String()):
		return limit.Fixed()
	default:
		return limit
	}
}

// oneKeyPerScript are the options of a limiter whose scripts have the keys of one call only.
var oneKeyPerScript = core.Options{OneKeyPerScript: true}

// clientTimeout is go-redis's, so that a server that is late on a busy machine is late for all
// rivals alike.
const clientTimeout = 3 * time.Second

func onRedis(name string, options core.Options) Redis {
	return Redis{Name: name, Script: true, Open: func(p Place, l Limit) (Opened, error) {
		client := p.client()
		own := options
		own.Redis, own.Logger, own.Timeout = client, silent, clientTimeout
		limiter, err := core.New(own)
		if err != nil {
			return Opened{}, err
		}
		counter := limiter.MustCounter("bench", ourLimit(name, l))
		allow := func(ctx context.Context, subject string) (harness.Answer, error) {
			d, err := counter.Allow(ctx, subject)
			return harness.Answer{Allowed: d.Allowed, Source: string(d.Source)}, err
		}
		return Opened{allow, func() { limiter.Close(); _ = client.Close() }}, nil
	}}
}

func inProcess(name string) InProcess {
	return InProcess{name, func(l Limit, keys int) (func(string) bool, func()) {
		limiter := must(core.New(core.Options{MaxKeys: max(2*keys, 250_000), Logger: silent}))
		counter := limiter.MustCounter("bench", ourLimit(name, l))
		return func(subject string) bool {
			d, err := counter.Allow(background, subject)
			return err == nil && d.Allowed
		}, limiter.Close
	}}
}

// ourRule is the rule of our middlewares: the default algorithm, and the caller's address.
var ourRule = core.Rule{Name: "api", Seconds: 60, MaxCount: middlewareMax}

// ours is our middleware with its default headers.
func ours(framework string, newCaller func(*core.Limiter) func() func()) Middleware {
	return oursSending(0, framework, Ours, newCaller)
}

func oursSending(headers core.HeaderStyle, framework, name string, newCaller func(*core.Limiter) func() func()) Middleware {
	return Middleware{framework, name, name, func() (func() func(), func()) {
		limiter := must(core.New(core.Options{Logger: silent, Headers: headers}))
		return newCaller(limiter), limiter.Close
	}}
}

// The older headers give the reset in seconds since 1970, or in seconds from now, as throttled and
// fiber send it.
var (
	ourNetHTTP      = ours("net/http", limitNetHTTP)
	ourOlderNetHTTP = oursSending(core.HeadersXRateLimit, "net/http", OursXRateLimit, limitNetHTTP)
	ourQuietNetHTTP = oursSending(core.NoHeaders, "net/http", OursNoHeaders, limitNetHTTP)
	ourGin          = ours("gin", limitGin)
	ourOlderGin     = oursSending(core.HeadersXRateLimit, "gin", OursXRateLimit, limitGin)
	ourQuietGin     = oursSending(core.NoHeaders, "gin", OursNoHeaders, limitGin)
	ourEcho         = ours("echo", limitEcho)
	ourOlderEcho    = oursSending(core.HeadersXRateLimit, "echo", OursXRateLimit, limitEcho)
	ourQuietEcho    = oursSending(core.NoHeaders, "echo", OursNoHeaders, limitEcho)
	ourFiber        = ours("fiber", limitFiber)
	ourOlderFiber   = oursSending(core.HeadersXRateLimitDelta, "fiber", OursXRateLimit, limitFiber)
	ourQuietFiber   = oursSending(core.NoHeaders, "fiber", OursNoHeaders, limitFiber)
	ourGRPC         = ours("gRPC", limitGRPC)
)

func limitNetHTTP(limiter *core.Limiter) func() func() {
	return httpCaller(nethttplimit.New(limiter, ourRule)(http.HandlerFunc(nothing)))
}

func limitGin(limiter *core.Limiter) func() func() {
	return httpCaller(ginWith(gin.HandlersChain{ginlimit.New(limiter, ourRule)}))
}

func limitEcho(limiter *core.Limiter) func() func() {
	return httpCaller(echoWith([]echo.MiddlewareFunc{echolimit.New(limiter, ourRule)}))
}

func limitFiber(limiter *core.Limiter) func() func() {
	return fastCaller(fiberWith([]fiber.Handler{fiberlimit.New(limiter, ourRule)}))
}

func limitGRPC(limiter *core.Limiter) func() func() {
	limit := grpclimit.UnaryServerInterceptor(limiter, ourRule)
	return grpcCaller(func(ctx context.Context, handler grpc.UnaryHandler) {
		_, _ = limit(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/shop/list"}, handler)
	})
}

// must panics on an error, which only a mistake in this program can cause.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// peerAddr is the caller of the middlewares. One is enough, because the limits are large.
var peerAddr = &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 1234}

// middlewareMax is the number of calls that a limit on a middleware admits in middlewareWindow.
const (
	middlewareMax    = 1e9
	middlewareWindow = time.Minute
)
