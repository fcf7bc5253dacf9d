package fiberlimit_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/fiberlimit"
)

// TestTrailersAreNoHeaders sends requests in one go on one connection, and compares what rules are
// shown before and after the body is read.
func TestTrailersAreNoHeaders(t *testing.T) {
	for _, config := range []fiber.Config{{}, {StreamRequestBody: true}, {DisableHeaderNormalizing: true}, {StreamRequestBody: true, DisableHeaderNormalizing: true}} {
		t.Run(fmt.Sprintf("stream %v, names as sent %v", config.StreamRequestBody, config.DisableHeaderNormalizing), func(t *testing.T) {
			conn, seen := serveUsers(t, config)
			requests := []struct{ sent, want string }{
				{"POST / HTTP/1.1\r\nHost: a\r\nX-User: alice\r\n" + chunks + "X-User: mallory\r\n\r\n", "alice"},
				{"POST / HTTP/1.1\r\nHost: a\r\nx-user: alice\r\n" + chunks + "x-user: mallory\r\n\r\n", "alice"},
				{"POST / HTTP/1.1\r\nHost: a\r\n" + chunks + "X-User: mallory\r\n\r\n", ""},
				{"GET / HTTP/1.1\r\nHost: a\r\nX-User: bob\r\n\r\n", "bob"},
				{"POST / HTTP/1.1\r\nHost: a\r\nConnection: X-User\r\nX-User: alice\r\nX-User: \r\nTrailer: X-User\r\n" + chunks + "X-User: mallory\r\n\r\n", "alice|"},
				{"POST / HTTP/1.1\r\nHost: a\r\nX-User: alice\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-User: mallory\r\n\r\n", "alice"},
				{"POST / HTTP/1.1\r\nHost: a\r\nX-User : alice\r\ntransfer-encoding : chunked\r\n\r\n0\r\nX-User : mallory\r\n\r\n", "alice"},
				{"POST /set HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", "set"},
				{"POST /set HTTP/1.1\r\nHost: a\r\nX-User: alice\r\n" + chunks + "X-User: mallory\r\n\r\n", "set"},
			}
			go func() {
				for _, request := range requests {
					_, _ = io.WriteString(conn, request.sent)
				}
			}()
			replies := bufio.NewReader(conn)
			for _, request := range requests {
				if _, err := http.ReadResponse(replies, nil); err != nil {
					t.Fatalf("%q: %v", request.sent, err)
				}
				if got := <-seen; !slices.Equal(got, []string{request.want, request.want}) {
					t.Errorf("%q: the rules were shown %q, want %q", request.sent, got, request.want)
				}
			}
		})
	}
}

// chunks ends a header, and holds a body up to its trailers.
const chunks = "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n"

// serveUsers serves an app on a connection. For each call, it sends the values of X-User: those
// that a middleware is shown, and those that a check is shown when the handler has read the body.
func serveUsers(t *testing.T, config fiber.Config) (net.Conn, <-chan []string) {
	limiter, err := core.New(core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	seen, shown := make(chan []string, 100), []string(nil)
	note := func(r core.Request) (string, error) {
		shown = append(shown, strings.Clone(strings.Join(r.Header("X-User"), "|")))
		return "anybody", nil
	}
	check := limiter.MustCheck(core.Rule{Name: "inside", Seconds: 60, MaxCount: 100, Key: note})
	config.DisableStartupMessage = true
	app := fiber.New(config)
	app.Use("/set", func(c *fiber.Ctx) error {
		c.Request().Header.Set("X-User", "set")
		return c.Next()
	})
	app.All("/*", fiberlimit.New(limiter, core.Rule{Name: "outside", Seconds: 60, MaxCount: 100, Key: note}), func(c *fiber.Ctx) error {
		_ = c.Body()
		fiberlimit.Allow(c, check, "")
		seen <- shown
		shown = nil
		return c.SendStatus(fiber.StatusNoContent)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(l) }()
	t.Cleanup(func() { _ = l.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn, seen
}
