package console_test

import (
	"context"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// mounts serve a page under /ops/limits in each framework, and return the URL of the server.
var mounts = map[string]func(t *testing.T, page http.Handler) (url string){
	"net/http": func(t *testing.T, page http.Handler) string {
		mux := http.NewServeMux()
		mux.Handle("/ops/limits/", page)
		return serve(t, mux)
	},
	"net/http, stripped": func(t *testing.T, page http.Handler) string {
		mux := http.NewServeMux()
		mux.Handle("/ops/limits", http.StripPrefix("/ops/limits", page))
		mux.Handle("/ops/limits/", http.StripPrefix("/ops/limits", page))
		return serve(t, mux)
	},
	"gin": func(t *testing.T, page http.Handler) string {
		gin.SetMode(gin.ReleaseMode)
		router := gin.New()
		router.Any("/ops/limits/*page", gin.WrapH(page))
		return serve(t, router)
	},
	"echo": func(t *testing.T, page http.Handler) string {
		e := echo.New()
		e.Any("/ops/limits", echo.WrapHandler(page))
		e.Any("/ops/limits/*", echo.WrapHandler(page))
		return serve(t, e)
	},
	"fiber": func(t *testing.T, page http.Handler) string {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.All("/ops/limits/*", adaptor.HTTPHandler(page))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- app.Listener(listener) }()
		bounded.Cleanup(t, func() {
			http.DefaultClient.CloseIdleConnections()
			_ = app.ShutdownWithContext(context.Background())
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return "http://" + listener.Addr().String()
	},
}

// In each framework, a browser finds the page without the slash at the end, follows its links, acts
// and reads events.
func TestMounting(t *testing.T) {
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			limiter := newLimiter(t, core.Options{})
			attach(t, limiter, steered)
			page := newPage(t, limiter, console.Options{Authorize: func(*http.Request) (console.Identity, error) {
				return console.Identity{Name: "alice", Role: console.Operator}, nil
			}})
			url := mount(t, page)
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			visitor := &http.Client{Jar: jar}
			get := func(url string) answer { return reply(t)(visitor.Get(url)) }
			for _, link := range []string{"/ops/limits", "/ops/limits/"} {
				first := get(url + link)
				if first.Request.URL.Path != "/ops/limits/" || !strings.Contains(first.body, "<h1>Now</h1>") {
					t.Fatalf("%s leads to %v:\n%s", link, first.Request.URL, first.body)
				}
			}
			for path, want := range map[string]string{"audit": "<h1>Audit</h1>", "style.css": "color-scheme", "api/now": `{"time":`} {
				if got := get(url + "/ops/limits/" + path); !strings.Contains(got.body, want) {
					t.Errorf("%s: status %d: %s", path, got.StatusCode, got.body)
				}
			}
			form := get(url + "/ops/limits/subject?subject=user:bob")
			token := tokenIn.FindStringSubmatch(form.body)
			if token == nil {
				t.Fatalf("no form: %s", form.body)
			}
			ban := fields("rule", "api", "subject", "user:bob", "for", "1h", "note", "n", "token", token[1])
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/ops/limits/ban", strings.NewReader(ban.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", url)
			did := reply(t)(visitor.Do(r))
			if did.Request.URL.Path != "/ops/limits/subject" || !strings.Contains(did.body, "The subject is banned.") {
				t.Errorf("the ban leads to %v:\n%s", did.Request.URL, did.body)
			}
			live := read(t, url+"/ops")
			if html, ok := live.event(); !ok || !strings.Contains(html, "By rule") {
				t.Errorf("the event is %t, %s: %s", ok, html, live.Status)
			}
			page.Close()
		})
	}
}

// reply returns a function that reads the reply to a request.
func reply(t *testing.T) func(*http.Response, error) answer {
	return func(got *http.Response, err error) answer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return readAll(t, got)
	}
}
