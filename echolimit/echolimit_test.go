package echolimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/echolimit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serveAfter(), Endings: endings})
}

// TestMethodOverride runs the adapter's tests where callers may override the method by a header,
// which echo reads before Use.
func TestMethodOverride(t *testing.T) {
	adaptertest.RunPaths(t, adaptertest.Adapter{Serve: serveAfter(middleware.MethodOverride())})
}

// serveAfter serves with middlewares in front of the router.
func serveAfter(pre ...echo.MiddlewareFunc) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		return adaptertest.ServeHTTP(l, frameworks.Echo(app, pre...))
	}
}

// endings are echo's own ways for a call to end.
var endings = []adaptertest.Ending{
	ending("HTTPError", 404, func(echo.Context) error { return echo.NewHTTPError(404) }),
	ending("one of echo's errors", 401, func(echo.Context) error { return echo.ErrUnauthorized }),
	ending("HTTPError with a cause", 403, func(echo.Context) error { return echo.NewHTTPError(403).SetInternal(errors.New("why")) }),
	ending("HTTPError with an HTTPError inside", 409, func(echo.Context) error {
		return echo.NewHTTPError(400).SetInternal(echo.NewHTTPError(409))
	}),
	ending("a wrapped HTTPError", 500, func(echo.Context) error { return fmt.Errorf("asked: %w", echo.NewHTTPError(404)) }),
	ending("a plain error", 500, func(echo.Context) error { return errors.New("broken") }),
	ending("a reply, then an error", 200, func(c echo.Context) error {
		_ = c.String(200, "half of it")
		return errors.New("broken")
	}),
	ending("a refusal, then an error", 403, func(c echo.Context) error {
		_ = c.NoContent(403)
		return echo.NewHTTPError(500)
	}),
	ending("an error that was answered already", 404, func(c echo.Context) error { c.Error(echo.ErrNotFound); return nil }),
	ending("an error answered and returned", 404, func(c echo.Context) error { c.Error(echo.ErrNotFound); return echo.ErrNotFound }),
	ending("NoContent", 204, func(c echo.Context) error { return c.NoContent(204) }),
	ending("Redirect", 302, func(c echo.Context) error { return c.Redirect(302, "/elsewhere") }),
	ending("a body, then a status", 200, func(c echo.Context) error {
		_, _ = c.Response().Write([]byte("half of it"))
		return c.NoContent(500)
	}),
	ending("early hints", 200, func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusEarlyHints)
		_, err := c.Response().Write([]byte("ok"))
		return err
	}),
	ending("echo.WrapHandler", 502, echo.WrapHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "upstream", http.StatusBadGateway)
	}))),
	ending("a stream that breaks off at once", 200, func(c echo.Context) error { return c.Stream(200, "text/plain", broken{}) }),
	ending("a flush, then an error", 200, func(c echo.Context) error {
		c.Response().Flush()
		return errors.New("broken")
	}),
	ending("a flush, then an HTTPError", 200, func(c echo.Context) error {
		c.Response().Flush()
		return echo.NewHTTPError(404)
	}),
	ending("a connection taken over, then an error", 200, func(c echo.Context) error {
		conn, _, err := c.Response().Hijack()
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return errors.Join(errors.New("the peer has left"), err, conn.Close())
	}),
	ending("a connection that cannot be taken over", 500, func(c echo.Context) error {
		c.Response().Writer = struct{ http.ResponseWriter }{c.Response().Writer} // as in HTTP/2
		_, _, err := c.Response().Hijack()
		return err
	}),
	{Name: "a panic after half a reply", Outcome: 500, OtherOutcome: 200, Sent: 200, Handle: func(h adaptertest.Handling) {
		h.Text("half of it")
		panic("a handler's own fault")
	}},
}

func ending(name string, status int, handle echo.HandlerFunc) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: status, Handle: func(h adaptertest.Handling) {
		h.(*frameworks.EchoHandling).Err = handle(h.(*frameworks.EchoHandling).C)
	}}
}

// broken is a body that cannot be read.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestReturnedCancellation checks that an error which says that the caller left is distinguished
// from a failure of the handler's own.
func TestReturnedCancellation(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	for _, left := range []bool{true, false} {
		var received int
		e := echo.New()
		e.Use(echolimit.New(limiter, core.Rule{Name: "n", Seconds: 60, Count: func(status int) bool { received = status; return true }}))
		ctx, leave := context.WithCancel(t.Context())
		e.GET("/", func(c echo.Context) error {
			inner, cancel := context.WithCancel(c.Request().Context())
			c.SetRequest(c.Request().WithContext(inner)) // as a middleware inside does
			if left {
				leave()
			}
			cancel()
			return fmt.Errorf("asked: %w", inner.Err())
		})
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		leave()
		if want := map[bool]int{true: 499, false: 500}[left]; received != want {
			t.Errorf("the caller left: %v, Count received %d, want %d", left, received, want)
		}
	}
}

// TestReplyOfAMiddlewareAround checks that a middleware around the limiter can send a whole body, even
// if a middleware inside has put a writer around the followed one and left it there.
func TestReplyOfAMiddlewareAround(t *testing.T) {
	errorPages := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			_ = next(c)
			c.Response().Header().Set("Content-Length", "6")
			return c.String(http.StatusBadGateway, "broken")
		}
	}
	bodyLogger := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Response().Writer = struct{ http.ResponseWriter }{c.Response().Writer}
			return next(c)
		}
	}
	e := echo.New()
	e.Use(errorPages, echolimit.New(limitertest.New(t, core.Options{}), core.Rule{Name: "n", Limit: core.InFlight(5)}), bodyLogger)
	e.GET("/", func(echo.Context) error { return errors.New("broken") })
	server := httptest.NewServer(e)
	bounded.Cleanup(t, server.Close)
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); string(body) != "broken" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

// FuzzPaths tries paths on echo's router.
func FuzzPaths(f *testing.F) { adaptertest.FuzzPaths(f, adaptertest.Adapter{Serve: serveAfter()}) }

func TestMain(m *testing.M) { leakcheck.Main(m) }
