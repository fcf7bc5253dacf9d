package limittest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/ginlimit"
)

// The documentation of the package has what follows, up to TestDocumentedCode.

var replyRule = core.Rule{Name: "reply", Seconds: 60, MaxCount: 5, OnStoreError: core.FailClosed}

func newService(limiter *core.Limiter) http.Handler {
	router := gin.New()
	router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
	router.POST("/reply", ginlimit.New(limiter, replyRule), func(c *gin.Context) { c.String(200, "replied") })
	return router
}

func newLimiter(t *testing.T, options core.Options) *core.Limiter {
	limiter, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
}

func post(service http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	service.ServeHTTP(w, httptest.NewRequest("POST", "/reply", nil)) // comes from 192.0.2.1
	return w
}

func TestReplyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newService(newLimiter(t, core.Options{}))
		for range 5 {
			if w := post(service); w.Code != http.StatusOK {
				t.Fatalf("status %d", w.Code)
			}
		}
		refused := post(service)
		wait, err := strconv.Atoi(refused.Header().Get("Retry-After"))
		if refused.Code != http.StatusTooManyRequests || err != nil {
			t.Fatalf("status %d, %v", refused.Code, err)
		}
		time.Sleep(time.Duration(wait) * time.Second)
		if w := post(service); w.Code != http.StatusOK {
			t.Errorf("status %d after Retry-After", w.Code)
		}
	})
}

func TestReplyTooOften(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	limittest.UseUp(t, limiter, replyRule, "ip:192.0.2.1")
	if w := post(newService(limiter)); w.Code != http.StatusTooManyRequests {
		t.Errorf("status %d", w.Code)
	}
}

func TestReplyWithoutRedis(t *testing.T) {
	server := limittest.StartRedis(t)
	service := newService(newLimiter(t, core.Options{Redis: server.Client(t)}))
	if w := post(service); w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	server.Kill()
	if w := post(service); w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d while Redis is down", w.Code)
	}
}

func TestRulesOfReply(t *testing.T) {
	w := post(newService(newLimiter(t, core.Options{})))
	policies := strings.Join(w.Header().Values("RateLimit-Policy"), ", ")
	if want := `"api";q=100;w=1, "reply";q=5;w=60`; policies != want {
		t.Errorf("the rules are %s, want %s", policies, want)
	}
}

func TestRulesOfCheck(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	login := limiter.MustCheck(core.Rule{Name: "login", Seconds: 600, MaxCount: 10})
	for _, rule := range login.Rules() {
		limittest.UseUp(t, limiter, rule, "account:carol")
	}
}

// TestDocumentedCode requires each piece of code in the documentation to be in a test.
func TestDocumentedCode(t *testing.T) {
	tests := readFile(t, "service_test.go") + readFile(t, "adapter_test.go")
	pieces, piece := 0, ""
	for line := range strings.Lines(readFile(t, "doc.go")) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			piece += code
			continue
		}
		if piece != "" && !strings.Contains(tests, "\n"+piece) {
			t.Errorf("no test has the code\n%s", piece)
		}
		pieces, piece = pieces+min(1, len(piece)), ""
	}
	if pieces < 8 {
		t.Errorf("there are %d pieces of code in doc.go", pieces)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestUseUp uses up limits of every algorithm, fresh and partly used.
func TestUseUp(t *testing.T) {
	limiter := newLimiter(t, core.Options{Redis: limittest.StartRedis(t).Client(t)})
	for name, limit := range map[string]core.Limit{
		"window": core.PerHour(3), "log": core.PerHour(3).Log(), "fixed": core.PerHour(3).Fixed(), "day": core.PerDay(3).Aligned(),
		"bucket": core.PerHour(3).Bucket(7),
	} {
		counter := limiter.MustCounter(name, limit)
		for _, used := range []int{0, 2} {
			subject := "user:" + string(rune('a'+used))
			if _, err := counter.AllowN(context.Background(), subject, used); err != nil {
				t.Fatal(err)
			}
			limittest.UseUp(t, limiter, core.Rule{Name: name, Limit: limit}, subject)
			if d, err := counter.Allow(context.Background(), subject); err != nil || d.Allowed {
				t.Errorf("%v: %+v, %v", limit, d, err)
			}
		}
	}
	t.Run("slots", func(t *testing.T) {
		limittest.UseUp(t, limiter, core.Rule{Name: "slots", Limit: core.Limit{Max: 2, Window: time.Minute, Algorithm: core.Concurrency}}, "user:a")
		if d, err := limiter.MustSlots("slots", 2).LostAfter(time.Minute).Peek(t.Context(), "user:a"); err != nil || d.Remaining != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	})
	if d, err := limiter.MustSlots("slots", 2).LostAfter(time.Minute).Peek(t.Context(), "user:a"); err != nil || d.Remaining != 2 {
		t.Errorf("after the test: %+v, %v", d, err)
	}
}
