package echo5limit_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/echo5limit"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serveBy(echo.RouterConfig{}), Endings: endings})
}

// routers are other configurations of echo's router.
var routers = map[string]echo.RouterConfig{
	"decoded paths":      {UseEscapedPathForMatching: true},
	"decoded parameters": {UnescapePathParamValues: true},
}

func TestPaths(t *testing.T) {
	for name, config := range routers {
		t.Run(name, func(t *testing.T) { adaptertest.RunPaths(t, adaptertest.Adapter{Serve: serveBy(config)}) })
	}
}

func FuzzPaths(f *testing.F) {
	adapters := []adaptertest.Adapter{{Serve: serveBy(echo.RouterConfig{})}}
	for _, config := range routers {
		adapters = append(adapters, adaptertest.Adapter{Serve: serveBy(config)})
	}
	adaptertest.FuzzPaths(f, adapters...)
}

// endings are the ways for a call to end that only echo has.
var endings = []adaptertest.Ending{
	{Name: "echo's not-found error", Outcome: 404, Handle: failing(echo.ErrNotFound)},
	{Name: "an HTTPError", Outcome: 418, Handle: failing(echo.NewHTTPError(http.StatusTeapot, "a teapot"))},
	{Name: "a wrapped error", Outcome: 401, Handle: failing(fmt.Errorf("no session: %w", echo.ErrUnauthorized))},
	{Name: "an error without a status", Outcome: 500, Handle: failing(errors.New("the handler's own fault"))},
	{Name: "an error after the reply", Outcome: 200, Handle: ending(func(c *echo.Context) error {
		return errors.Join(c.String(http.StatusOK, "ok"), echo.ErrNotFound)
	})},
	{Name: "an error after a flush", Outcome: 200, Handle: ending(func(c *echo.Context) error {
		return errors.Join(http.NewResponseController(c.Response()).Flush(), echo.ErrNotFound)
	})},
	{Name: "JSON", Outcome: 404, Handle: ending(func(c *echo.Context) error { return c.JSON(http.StatusNotFound, "none") })},
	{Name: "a redirect", Outcome: 302, Handle: ending(func(c *echo.Context) error { return c.Redirect(http.StatusFound, "/") })},
	{Name: "a status set before the body", Outcome: 404, Handle: ending(func(c *echo.Context) error {
		response, err := echo.UnwrapResponse(c.Response())
		response.Status = http.StatusNotFound
		_, _ = io.WriteString(c.Response(), "none")
		return err
	})},
	{Name: "a status changed in Before", Outcome: 503, Handle: ending(func(c *echo.Context) error {
		response, err := echo.UnwrapResponse(c.Response())
		response.Before(func() { response.Status = http.StatusServiceUnavailable })
		return errors.Join(err, c.NoContent(http.StatusOK))
	})},
	{Name: "a status set, and no reply", Outcome: 200, Handle: ending(func(c *echo.Context) error {
		response, err := echo.UnwrapResponse(c.Response())
		response.Status = http.StatusNotFound
		return err
	})},
	{Name: "a panic after the reply", Outcome: 500, OtherOutcome: 200, Sent: 200, Handle: ending(func(c *echo.Context) error {
		_ = c.String(http.StatusOK, "ok")
		panic("a handler's own fault")
	})},
	{Name: "a connection taken over", Outcome: 200, Handle: ending(func(c *echo.Context) error {
		conn, _, err := c.Response().(http.Hijacker).Hijack()
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return errors.Join(err, conn.Close())
	})},
	{Name: "a connection that cannot be taken over", Outcome: 500, Handle: ending(func(c *echo.Context) error {
		response, err := echo.UnwrapResponse(c.Response())
		response.ResponseWriter = struct{ http.ResponseWriter }{response.ResponseWriter} // as in HTTP/2
		if err == nil {
			_, _, err = c.Response().(http.Hijacker).Hijack()
		}
		return err
	})},
}

func failing(err error) func(adaptertest.Handling) {
	return ending(func(*echo.Context) error { return err })
}

func ending(handle echo.HandlerFunc) func(adaptertest.Handling) {
	return func(h adaptertest.Handling) {
		own := h.(*handling)
		own.err = handle(own.c)
	}
}

// call makes a call without a network.
func call(e *echo.Echo, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// A HEAD that echo answers by the handler for GET counts by the status that the handler sent.
func TestAutoHandleHEAD(t *testing.T) {
	limiter, outcomes := extensiontest.NewLimiter(t, core.Options{}), make(chan int, 2)
	counting := func(name string) echo.MiddlewareFunc {
		return echo5limit.New(limiter, core.Rule{Name: name, Seconds: 60, Count: func(outcome int) bool {
			outcomes <- outcome
			return true
		}})
	}
	e := newEcho(echo.RouterConfig{AutoHandleHEAD: true})
	e.Use(counting("all"))
	e.GET("/none", func(c *echo.Context) error { return c.String(http.StatusNotFound, "none") }, counting("none"))
	if w := call(e, http.MethodHead, "/none"); w.Code != http.StatusNotFound {
		t.Fatalf("status %d, want 404", w.Code)
	}
	for range 2 {
		if outcome := <-outcomes; outcome != http.StatusNotFound {
			t.Errorf("Count received %d, want 404", outcome)
		}
	}
}

// A reply to the handler's error is whole, though its length is declared and a rule holds slots.
func TestReplyToAnError(t *testing.T) {
	e := newEcho(echo.RouterConfig{})
	e.HTTPErrorHandler = func(c *echo.Context, _ error) {
		c.Response().Header().Set(echo.HeaderContentLength, "4")
		_ = c.String(http.StatusNotFound, "none")
	}
	slot := core.Rule{Name: "slot", Limit: core.InFlight(1)}
	e.GET("/none", func(*echo.Context) error { return echo.ErrNotFound }, echo5limit.New(extensiontest.NewLimiter(t, core.Options{}), slot))
	if w := call(e, "GET", "/none"); w.Code != http.StatusNotFound || w.Body.String() != "none" {
		t.Errorf("status %d, body %q", w.Code, w.Body)
	}
}

// In Pre echo knows no route, which the log says of a rule without a name.
func TestPre(t *testing.T) {
	var logged strings.Builder
	limiter := extensiontest.NewLimiter(t, core.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	e := newEcho(echo.RouterConfig{})
	e.Pre(echo5limit.New(limiter, core.Rule{Seconds: 60, MaxCount: 1}))
	e.GET("/a", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })
	if first, second := call(e, "GET", "/a").Code, call(e, "GET", "/none").Code; first != 200 || second != 429 {
		t.Errorf("the calls got %d and %d, want 200 and 429", first, second)
	}
	if !strings.Contains(logged.String(), "give the rule a Name or Paths") {
		t.Errorf("the log is %q", &logged)
	}
}

// In a Group a call that no route matches counts under the group's own pattern.
func TestGroup(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{})
	e := newEcho(echo.RouterConfig{})
	group := e.Group("/g", echo5limit.New(limiter, core.Rule{Seconds: 60, MaxCount: 1}))
	group.GET("/users/:id", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })
	for _, step := range []struct {
		target string
		status int
	}{{"/g/users/1", 200}, {"/g/users/2", 429}, {"/g/none", 404}, {"/g/nor/this", 429}, {"/none", 404}, {"/none", 404}} {
		if w := call(e, "GET", step.target); w.Code != step.status {
			t.Errorf("GET %s: status %d, want %d", step.target, w.Code, step.status)
		}
	}
}

// The package comment says what Count receives through echo's own adaptor for net/http.
func TestWrapMiddleware(t *testing.T) {
	limiter, outcomes := extensiontest.NewLimiter(t, core.Options{}), make(chan int, 1)
	rule := core.Rule{Name: "all", Seconds: 60, Count: func(outcome int) bool {
		outcomes <- outcome
		return true
	}}
	e := newEcho(echo.RouterConfig{})
	e.GET("/none", func(*echo.Context) error { return echo.ErrNotFound }, echo.WrapMiddleware(nethttplimit.New(limiter, rule)))
	if w := call(e, "GET", "/none"); w.Code != 404 || <-outcomes != 200 {
		t.Errorf("status %d, want 404, and Count did not receive 200", w.Code)
	}
}
