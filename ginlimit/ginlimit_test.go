package ginlimit_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

func TestAdapter(t *testing.T) {
	gin.SetMode(gin.TestMode)
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve(func(*gin.Engine) {}), Endings: endings})
}

// TestRoutingOptions runs the adapter's tests while gin routes by other forms of the path.
func TestRoutingOptions(t *testing.T) {
	gin.SetMode(gin.TestMode)
	adaptertest.RunPaths(t, adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.RemoveExtraSlash = true, true })})
}

func serve(configure func(*gin.Engine)) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		return adaptertest.ServeHTTP(l, frameworks.Gin(app, configure))
	}
}

// endings are gin's own ways for a call to end.
var endings = []adaptertest.Ending{
	ending("Status alone", 418, func(c *gin.Context) { c.Status(418) }),
	ending("JSON", 422, func(c *gin.Context) { c.JSON(422, gin.H{"field": "missing"}) }),
	ending("AbortWithStatus", 403, func(c *gin.Context) { c.AbortWithStatus(403) }),
	ending("AbortWithError", 400, func(c *gin.Context) { _ = c.AbortWithError(400, errors.New("wrong")) }),
	ending("Error is only noted", 200, func(c *gin.Context) { _ = c.Error(errors.New("noted")) }),
	ending("Redirect", 302, func(c *gin.Context) { c.Redirect(302, "/elsewhere") }),
	ending("not modified", 304, func(c *gin.Context) { c.Status(304) }),
	ending("a body, then a status", 200, func(c *gin.Context) {
		_, _ = c.Writer.WriteString("half of it")
		c.Status(500)
	}),
	ending("two statuses, nothing sent between", 500, func(c *gin.Context) { c.Status(200); c.Status(500) }),
	ending("a flush, then a status", 200, func(c *gin.Context) { c.Writer.Flush(); c.AbortWithStatus(500) }),
	ending("early hints", 200, func(c *gin.Context) {
		c.Status(http.StatusEarlyHints)
		c.Writer.WriteHeaderNow()
		_, _ = c.Writer.WriteString("ok")
	}),
	ending("events", 200, func(c *gin.Context) {
		for range 3 {
			c.SSEvent("tick", "tock")
			c.Writer.Flush()
		}
	}),
	ending("gin.WrapF", 502, func(c *gin.Context) {
		gin.WrapF(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "upstream", http.StatusBadGateway) })(c)
	}),
	ending("a body that breaks off at once", 502, func(c *gin.Context) {
		if _, err := io.Copy(c.Writer, broken{}); err != nil {
			c.String(502, "upstream")
		}
	}),
	{Name: "a panic after half a reply", Outcome: 500, OtherOutcome: 200, Sent: 200, Handle: func(h adaptertest.Handling) {
		h.Text("half of it")
		panic("a handler's own fault")
	}},
}

func ending(name string, status int, handle func(*gin.Context)) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: status, Handle: func(h adaptertest.Handling) { handle(h.(frameworks.GinHandling).C) }}
}

// broken is a body that cannot be read.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestStatusSentBeforeAPanic checks that Count receives the status that gin has sent, and not the one
// that was only set, when a handler panics in the middle of its reply.
func TestStatusSentBeforeAPanic(t *testing.T) {
	gin.SetMode(gin.TestMode)
	for name, test := range map[string]struct {
		reply func(*gin.Context)
		want  []int
	}{
		"a header alone":         {func(c *gin.Context) { c.AbortWithStatus(401) }, []int{500, 401}},
		"a flush":                {func(c *gin.Context) { c.Status(401); c.Writer.Flush() }, []int{500, 401}},
		"a body":                 {func(c *gin.Context) { c.Status(401); _, _ = c.Writer.Write([]byte("no")) }, []int{500, 401}},
		"a text":                 {func(c *gin.Context) { c.Status(401); _, _ = c.Writer.WriteString("no") }, []int{500, 401}},
		"a status changed twice": {func(c *gin.Context) { c.Status(200); c.Status(401); c.Writer.Flush() }, []int{500, 401}},
		"a status too late":      {func(c *gin.Context) { c.Writer.Flush(); c.Status(401) }, []int{500, 200}},
		"a status never sent":    {func(c *gin.Context) { c.Status(401) }, []int{500}},
		"hints, then a body": {func(c *gin.Context) {
			c.Status(http.StatusEarlyHints)
			c.Writer.WriteHeaderNow()
			_, _ = c.Writer.WriteString("ok")
		}, []int{500, 200}},
	} {
		router, received := gin.New(), []int(nil)
		count := func(status int) bool { received = append(received, status); return false }
		limiter := limitertest.New(t, core.Options{})
		router.GET("/", gin.RecoveryWithWriter(io.Discard), ginlimit.New(limiter, core.Rule{Seconds: 60, Count: count}), func(c *gin.Context) {
			test.reply(c)
			panic("a handler's own fault")
		})
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if !slices.Equal(received, test.want) {
			t.Errorf("%s: Count received %d, want %d", name, received, test.want)
		}
	}
}

// TestFailedLoginOfACallerWhoLeaves checks that a failed login behind a reverse proxy counts, even if
// its caller leaves in the middle of the reply. The proxy then panics.
func TestFailedLoginOfACallerWhoLeaves(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	bounded.Cleanup(t, upstream.Close)
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval, proxy.ErrorLog = -1, log.New(io.Discard, "", 0)
	limiter, ended := limitertest.New(t, core.Options{}), make(chan any, 1)
	gin.SetMode(gin.TestMode)
	router := gin.New()
	note := func(c *gin.Context) {
		defer func() { ended <- recover() }()
		c.Next()
	}
	failed := func(status int) bool { return status == http.StatusUnauthorized }
	router.GET("/login", note, ginlimit.New(limiter, core.Rule{Name: "login", Seconds: 60, MaxCount: 1, Count: failed}), gin.WrapH(proxy))
	server := httptest.NewServer(router)
	bounded.Cleanup(t, server.Close)
	for _, want := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		response, err := http.Get(server.URL + "/login")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close() // while the upstream still replies
		if response.StatusCode != want {
			t.Errorf("status %d, want %d", response.StatusCode, want)
		}
		if v := <-ended; (v == http.ErrAbortHandler) != (want == http.StatusUnauthorized) {
			t.Errorf("status %d: the handlers ended with %v", response.StatusCode, v)
		}
	}
}

// TestSizeOfACountedCall checks that a byte that is held back counts as written.
func TestSizeOfACountedCall(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	gin.SetMode(gin.TestMode)
	router, sizes := gin.New(), []int(nil)
	note := func(c *gin.Context) { c.Next(); sizes = append(sizes, c.Writer.Size()) }
	router.GET("/", note, ginlimit.New(limiter, core.Rule{Name: "n", Limit: core.InFlight(5)}), note, func(c *gin.Context) {
		c.Header("Content-Length", "4")
		_, _ = c.Writer.WriteString("four")
	})
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if !slices.Equal(sizes, []int{4, 4}) || w.Body.String() != "four" {
		t.Errorf("the sizes are %v, the body is %q", sizes, w.Body)
	}
}

// A length that is declared after the header was sent has no effect, and cuts no body off.
func TestLengthDeclaredTooLate(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	router := gin.New()
	router.GET("/", ginlimit.New(limiter, core.Rule{Limit: core.InFlight(5)}), func(c *gin.Context) {
		c.Writer.WriteHeaderNow()
		c.Header("Content-Length", "5")
		_, _ = c.Writer.WriteString("Hello")
		_, _ = c.Writer.WriteString(", world")
	})
	server := httptest.NewServer(router)
	bounded.Cleanup(t, server.Close)
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); string(body) != "Hello, world" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

// TestReplyOfAMiddlewareAround checks that a middleware around the limiter can send a whole body, even
// if a middleware inside has put a writer around the followed one and left it there.
func TestReplyOfAMiddlewareAround(t *testing.T) {
	gin.SetMode(gin.TestMode)
	router := gin.New()
	errorPages := func(c *gin.Context) {
		c.Next()
		c.Header("Content-Length", "6")
		c.String(http.StatusBadGateway, "broken")
	}
	bodyLogger := func(c *gin.Context) { c.Writer = &struct{ gin.ResponseWriter }{c.Writer} }
	limit := ginlimit.New(limitertest.New(t, core.Options{}), core.Rule{Limit: core.InFlight(5)})
	router.GET("/", errorPages, limit, bodyLogger, func(c *gin.Context) { _ = c.Error(errors.New("broken")) })
	server := httptest.NewServer(router)
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

// FuzzPaths tries paths on gin's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	gin.SetMode(gin.TestMode)
	adaptertest.FuzzPaths(f,
		adaptertest.Adapter{Serve: serve(func(*gin.Engine) {})},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath = true })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.UnescapePathValues = true, false })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.RemoveExtraSlash = true })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.RemoveExtraSlash = true, true })},
		adaptertest.Adapter{Serve: serve(func(e *gin.Engine) { e.RedirectFixedPath, e.HandleMethodNotAllowed = true, true })},
	)
}

func TestMain(m *testing.M) { leakcheck.Main(m) }

// buffer is the writer of a middleware that sends the reply when the handler has returned, and keeps the
// first status that it is given.
type buffer struct {
	gin.ResponseWriter
	status int
	body   []byte
}

func (b *buffer) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.body = append(b.body, p...)
	return len(p), nil
}

// A handler behind a writer that buffers may choose the status after it has written.
func TestStatusAfterABufferedBody(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	router := gin.New()
	router.Use(func(c *gin.Context) {
		b := &buffer{ResponseWriter: c.Writer}
		c.Writer = b
		c.Next()
		c.Writer = b.ResponseWriter
		c.Data(b.status, "text/plain", b.body)
	}, ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 60, MaxCount: 5, Count: func(status int) bool { return status < 400 }}))
	router.GET("/page", func(c *gin.Context) {
		_, _ = c.Writer.Write([]byte("half a page"))
		c.Status(http.StatusInternalServerError)
	})
	reply := httptest.NewRecorder()
	router.ServeHTTP(reply, httptest.NewRequest("GET", "/page", nil))
	if reply.Code != http.StatusInternalServerError || reply.Body.String() != "half a page" {
		t.Errorf("status %d, body %q", reply.Code, reply.Body)
	}
}
