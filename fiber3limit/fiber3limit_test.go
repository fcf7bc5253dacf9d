package fiber3limit_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/fiber3limit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

func TestFiber(t *testing.T) { adaptertest.Run(t, configured(fiber.Config{})) }

// customCtx is a service's own context.
type customCtx struct{ fiber.DefaultCtx }

// The settings that change what fiber's own getters return change nothing of whom a limit counts.
func TestFiberOtherwiseConfigured(t *testing.T) {
	adaptertest.RunInProcess(t, under(func() *fiber.App {
		return fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx {
			return &customCtx{*fiber.NewDefaultCtx(app)}
		}, fiber.Config{
			ReadBufferSize: 32 << 10, StreamRequestBody: true, Immutable: true,
			TrustProxy: true, ProxyHeader: fiber.HeaderXForwardedFor, EnableIPValidation: true,
			TrustProxyConfig: fiber.TrustProxyConfig{Loopback: true, Private: true, LinkLocal: true, UnixSocket: true},
		})
	}))
}

func TestPaths(t *testing.T) {
	for name, config := range routers {
		t.Run(name, func(t *testing.T) { adaptertest.RunPaths(t, configured(config)) })
	}
}

// routers are other configurations of fiber's router.
var routers = map[string]fiber.Config{
	"strict":    {StrictRouting: true, CaseSensitive: true},
	"unescaped": {UnescapePath: true},
}

func FuzzPaths(f *testing.F) {
	adaptertest.FuzzPaths(f, configured(fiber.Config{}), configured(routers["strict"]), configured(routers["unescaped"]))
}

// endings are the ways for a handler of fiber to end.
var endings = []adaptertest.Ending{
	returning("an error", errors.New("failed"), 500),
	returning("fiber's error", fiber.ErrTeapot, 418),
	{Name: "nothing, with a status", Handle: func(h adaptertest.Handling) { h.(handling).c.Status(204) }, Outcome: 204},
	{Name: "a stream", Outcome: 200, Handle: func(h adaptertest.Handling) {
		*h.(handling).err = h.(handling).c.SendStream(strings.NewReader("streamed"))
	}},
}

// returning returns the ending of a handler that returns an error.
func returning(name string, err error, outcome int) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: outcome, Handle: func(h adaptertest.Handling) { *h.(handling).err = err }}
}

// listen serves an app, and returns a connection to it.
func listen(t *testing.T, app *fiber.App) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, serve(app, l, adaptertest.App{}))
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() { _ = conn.Close() })
	return conn
}

// statuses sends requests over one connection, and returns the statuses of the replies.
func statuses(t *testing.T, conn net.Conn, requests ...string) (all []int) {
	t.Helper()
	from := bufio.NewReader(conn)
	for _, request := range requests {
		_, _ = io.WriteString(conn, request)
		reply, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatalf("%q: %v", request, err)
		}
		_, _ = io.Copy(io.Discard, reply.Body)
		all = append(all, reply.StatusCode)
	}
	return all
}

// get returns a request with further lines of its header.
func get(target string, lines ...string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: service.test\r\n" + strings.Join(append(lines, "\r\n"), "\r\n")
}

// Count receives what the app's own ErrorHandler, or that of a mounted app, makes of an error, and
// each of these is called once.
func TestErrorHandler(t *testing.T) {
	var received, handled []int
	errTaken := errors.New("taken")
	handling := func(status int) fiber.Config {
		return fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
			if !errors.Is(err, errTaken) {
				return err
			}
			handled = append(handled, status)
			return c.SendStatus(status)
		}}
	}
	limiter := extensiontest.NewLimiter(t, core.Options{})
	limit := fiber3limit.New(limiter, core.Rule{Name: "all", Seconds: 600, MaxCount: 100, Count: func(status int) bool {
		received = append(received, status)
		return true
	}})
	taken := func(fiber.Ctx) error { return errTaken }
	app, mounted := fiber.New(handling(409)), fiber.New(handling(422))
	app.Get("/taken", limit, taken)
	app.Get("/fails", limit, func(fiber.Ctx) error { return errors.New("failed") })
	mounted.Get("/taken", limit, taken)
	app.Use("/mounted", mounted)
	want := []int{409, 422, 500}
	if got := statuses(t, listen(t, app), get("/taken"), get("/mounted/taken"), get("/fails")); !slices.Equal(got, want) {
		t.Errorf("callers got %v, want %v", got, want)
	}
	if !slices.Equal(received, want) || !slices.Equal(handled, want[:2]) {
		t.Errorf("Count received %v, want %v; handled: %v", received, want, handled)
	}
}

// A request that fiber cannot read is not counted, because its caller is not known, and reaches no
// handler of Use behind a limiter.
func TestUnreadRequest(t *testing.T) {
	config := fiber.Config{BodyLimit: 10}
	for name, app := range map[string]*fiber.App{
		"fiber's context": fiber.New(config),
		"a custom context": fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx {
			return &customCtx{*fiber.NewDefaultCtx(app)}
		}, config),
	} {
		t.Run(name, func(t *testing.T) {
			limiter := extensiontest.NewLimiter(t, core.Options{})
			app.Use("*", fiber3limit.New(limiter, core.Rule{Name: "use", Seconds: 600, MaxCount: 1}))
			var reached atomic.Int32
			app.Use("*", func(c fiber.Ctx) error {
				reached.Add(1)
				return c.Next()
			})
			app.Post("/", func(c fiber.Ctx) error { return c.SendString("ok") })
			address := listen(t, app).RemoteAddr().String()
			for _, test := range []struct {
				request string
				want    int
			}{
				{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world", 413},
				{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n", 413},
				{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n", 400},
				{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell", 400},
				{"POST / HTTP/1.1\r\n\r\n", 400},
				{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 200},
				{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 429},
			} {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, test.request)
				_ = conn.(*net.TCPConn).CloseWrite() // a body that is shorter than its length ends
				got := statuses(t, conn, "")
				_ = conn.Close()
				if got[0] != test.want {
					t.Errorf("%q: status %v, want %d", test.request, got, test.want)
				}
			}
			if reached.Load() != 1 {
				t.Errorf("%d requests reached the handler, want that with status 200", reached.Load())
			}
		})
	}
}

// TestHeadersAsWritten runs the tricks with headers while fiber leaves their names as they were
// sent, and reads a body, with its trailers, only when a handler asks for it.
func TestHeadersAsWritten(t *testing.T) {
	adaptertest.RunTricks(t, configured(fiber.Config{DisableHeaderNormalizing: true, StreamRequestBody: true}))
}

// If fiber leaves the names of headers as they were sent, a rule sees the lines of every spelling,
// in order, and a trailer of any spelling is still no header.
func TestTrailersOfAnyCase(t *testing.T) {
	app := fiber.New(fiber.Config{DisableHeaderNormalizing: true})
	app.Get("/", fiber3limit.New(extensiontest.NewLimiter(t, core.Options{}), core.Rule{
		Name: "keys", Seconds: 600, MaxCount: 1, Key: func(r core.Request) (string, error) { return strings.Join(r.Header("X-Key"), ","), nil },
	}), func(c fiber.Ctx) error { return c.SendString("ok") })
	with := func(trailer string) string {
		return get("/", "x-key: a", "X-Key: b", "transfer-encoding: chunked") + "0\r\n" + trailer + ": c\r\n\r\n"
	}
	want := []int{200, 200, 429, 429}
	if got := statuses(t, listen(t, app), get("/", "X-Key: b"), with("X-Key"), with("x-key"), get("/", "x-key: a", "X-Key: b")); !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

// Rules see what a middleware has set in place of a header that was sent. The last line that was
// sent is last, although fasthttp moves it to the place of one that a middleware deletes, and what
// the getter of handlers returns is first.
func TestHeadersOfAMiddleware(t *testing.T) {
	var seen, users []string
	app := fiber.New()
	app.Get("/", func(c fiber.Ctx) error {
		c.Request().Header.Del("X-Deleted")
		c.Request().Header.Set("X-User", "set")
		seen, users = append(seen, strings.Clone(c.Get("X-Hop"))), append(users, strings.Clone(c.Get("X-User")))
		return c.Next()
	}, fiber3limit.New(extensiontest.NewLimiter(t, core.Options{}), core.Rule{Name: "hops", Seconds: 60, Key: func(r core.Request) (string, error) {
		seen = append(append(seen, r.Header("X-Hop")...), r.Header("X-User")...)
		return "anybody", nil
	}}))
	statuses(t, listen(t, app), get("/", "X-Deleted: a", "X-User: sent", "X-Hop: one", "X-Hop: two", "X-Hop: three\r\n"),
		get("/", "X-User: sent", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-User: trailer\r\n"))
	// With a trailer of the name, fasthttp 1.78 sets that instead, so the getter returns what was sent.
	if want := []string{"three", "three", "one", "two", "three", "set", "", users[1]}; !slices.Equal(seen, want) || users[0] != "set" {
		t.Errorf("the getter and the rule returned %q, want %q; the getter %q", seen, want, users)
	}
}
