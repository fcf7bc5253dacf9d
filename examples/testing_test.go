package examples_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/ginlimit"
)

// The code on the page core/limittest/TESTING.md:

type guards struct{ api, reply *core.Guard }

func newGuards(limiter *core.Limiter) guards {
	return guards{
		api:   limiter.MustGuard(core.Rule{Name: "api", Seconds: 1, MaxCount: 100}),
		reply: limiter.MustGuard(core.Rule{Name: "reply", Seconds: 60, MaxCount: 5, OnStoreError: core.FailClosed}),
	}
}

func newService(guards guards) http.Handler {
	router := gin.New()
	router.Use(ginlimit.With(guards.api))
	router.POST("/reply", ginlimit.With(guards.reply), func(c *gin.Context) { c.String(http.StatusOK, "replied") })
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
	service.ServeHTTP(w, httptest.NewRequest("POST", "/reply", nil)) // its RemoteAddr is 192.0.2.1
	return w
}

func TestReplyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newService(newGuards(newLimiter(t, core.Options{})))
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
	guards := newGuards(limiter)
	limittest.UseUp(t, limiter, guards.reply.Rules()[0], "ip:192.0.2.1")
	if w := post(newService(guards)); w.Code != http.StatusTooManyRequests {
		t.Errorf("status %d", w.Code)
	}
}

func TestReplyWithoutRedis(t *testing.T) {
	server := limittest.StartRedis(t)
	service := newService(newGuards(newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Minute})))
	if w := post(service); w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	server.Kill()
	if w := post(service); w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d while Redis is down", w.Code)
	}
}

func TestReplyNeverHadRedis(t *testing.T) {
	service := newService(newGuards(newLimiter(t, core.Options{Redis: limittest.NoRedis(t)})))
	if w := post(service); w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d without Redis", w.Code)
	}
}

func TestRulesOfReply(t *testing.T) {
	w := post(newService(newGuards(newLimiter(t, core.Options{}))))
	policies := strings.Join(w.Header().Values("RateLimit-Policy"), ", ")
	if want := `"api";q=100;w=1, "reply";q=5;w=60`; policies != want {
		t.Errorf("the limits are %s, want %s", policies, want)
	}
}

func TestRepliesFailClosed(t *testing.T) {
	for _, rule := range newGuards(newLimiter(t, core.Options{})).reply.Rules() {
		if rule.OnStoreError != core.FailClosed {
			t.Errorf("while Redis is down, rule %q lets everything pass", rule.Name)
		}
	}
}

func TestLimits(t *testing.T) {
	service := rulefile.Service{Require: []string{"api", "reply"}, Functions: &rulefile.Functions{}}
	checked, err := rulefile.Check(service, "quickstart/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range checked.Warnings() {
		t.Error(warning)
	}
}

// TestTestingPageHasThisCode requires each piece of code on the page to be in this file.
func TestTestingPageHasThisCode(t *testing.T) {
	page, err := os.ReadFile("../core/limittest/TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testing_test.go")
	if err != nil {
		t.Fatal(err)
	}
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	for _, piece := range pieces {
		if !bytes.Contains(tests, piece[1]) {
			t.Errorf("testing_test.go does not have\n%s", piece[1])
		}
	}
	if len(pieces) < 9 {
		t.Errorf("the page has %d pieces of code", len(pieces))
	}
}
