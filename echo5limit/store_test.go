package echo5limit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/limittest"
	"github.com/accesslimit/accesslimit/echo5limit"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

var (
	_ middleware.RateLimiterStore        = (*echo5limit.Store)(nil)
	_ middleware.RateLimiterStoreContext = (*echo5limit.Store)(nil)
)

// stored serves /a behind echo's own RateLimiter with a Store.
func stored(config middleware.RateLimiterConfig, limiter *core.Limiter, rule core.Rule) *echo.Echo {
	config.Store = echo5limit.NewStore(limiter, rule)
	e := newEcho(echo.RouterConfig{})
	e.Use(middleware.RateLimiterWithConfig(config))
	e.GET("/a", func(c *echo.Context) error { return c.String(http.StatusOK, "ok") })
	return e
}

// callFrom makes a call from an address.
func callFrom(e *echo.Echo, address string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/a", nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(address), 1234).String()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// engines are where counts are kept.
func engines(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Run("memory", func(t *testing.T) { test(t, nil) })
	t.Run("redis", func(t *testing.T) { test(t, limittest.StartRedis(t).Client(t)) })
}

func TestStore(t *testing.T) {
	engines(t, func(t *testing.T, rdb redis.UniversalClient) {
		limiter := extensiontest.NewLimiter(t, core.Options{Redis: rdb})
		e := stored(middleware.RateLimiterConfig{}, limiter, core.Rule{Name: "api", Limit: core.PerHour(2)})
		for _, address := range []string{"2001:db8::1", "2001:db8::2"} {
			if w := callFrom(e, address); w.Code != 200 || w.Header().Get("Ratelimit") == "" {
				t.Fatalf("%s: status %d, headers %v", address, w.Code, w.Header())
			}
		}
		w := callFrom(e, "2001:db8::3")
		if header := w.Header(); w.Code != 429 || header.Get("Retry-After") == "" || header.Get("X-Ratelimit-Limit") != "" {
			t.Errorf("status %d, headers %v, want 429 and Retry-After", w.Code, header)
		}
		if body := w.Body.String(); !strings.Contains(body, `{"message":"rate limit exceeded"}`) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("the body is %q of type %q, want echo's own", body, w.Header().Get("Content-Type"))
		}
		d, err := limiter.MustCounter("api", core.PerHour(2)).Peek(t.Context(), limiter.IPSubject(netip.MustParseAddr("2001:db8::4")))
		if err != nil || d.Remaining != 0 {
			t.Errorf("a rule by IP has %d left, want 0, because the addresses share a counter (%v)", d.Remaining, err)
		}
		if w := callFrom(e, "192.0.2.1"); w.Code != 200 {
			t.Errorf("another address got %d", w.Code)
		}
	})
}

// While Redis does not answer, the rule's policy decides.
func TestStoreFails(t *testing.T) {
	passOn := func(_ *echo.Context, _ string, err error) error { return err }
	for name, test := range map[string]struct {
		policy       core.StorePolicy
		deny         func(*echo.Context, string, error) error
		first, after int
	}{
		"fails open":                       {core.FailOpen, nil, 200, 200},
		"fails closed":                     {core.FailClosed, nil, 429, 429},
		"fails closed, with the own error": {core.FailClosed, passOn, 503, 503},
		"counts locally":                   {core.CountLocally(1), nil, 200, 429},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := extensiontest.NewLimiter(t, core.Options{Redis: limittest.NoRedis(t)})
			rule := core.Rule{Name: "api", Limit: core.PerHour(1), OnStoreError: test.policy}
			e := stored(middleware.RateLimiterConfig{DenyHandler: test.deny}, limiter, rule)
			for _, want := range []int{test.first, test.after} {
				w := callFrom(e, "192.0.2.1")
				if refused := w.Header().Get("Retry-After") != ""; w.Code != want || refused != (want != 200) {
					t.Errorf("status %d, Retry-After %q; want %d", w.Code, w.Header().Get("Retry-After"), want)
				}
			}
		})
	}
}

// The identifier is the subject. An empty one stands for the rule's own key.
func TestStoreIdentifier(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{Expose: true})
	e := stored(middleware.RateLimiterConfig{
		IdentifierExtractor: func(c *echo.Context) (string, error) { return c.QueryParam("account"), nil },
	}, limiter, core.Rule{Name: "api", Limit: core.PerHour(1), Key: core.Global})
	e.GET("/key", func(c *echo.Context) error {
		d, _ := core.DecisionFrom(c.Request().Context())
		return c.String(http.StatusOK, d.Key)
	})
	want := map[string]string{"?account=carol": "carol", "?account=192.0.2.1": "ip:192.0.2.1", "": "api"}
	for query, key := range want {
		if w := call(e, "GET", "/key"+query); w.Body.String() != key {
			t.Errorf("%q: status %d, key %q, want %q", query, w.Code, w.Body, key)
		}
	}
}

// Allow counts where there is no call.
func TestStoreAllow(t *testing.T) {
	engines(t, func(t *testing.T, rdb redis.UniversalClient) {
		limiter := extensiontest.NewLimiter(t, core.Options{Redis: rdb})
		store := echo5limit.NewStore(limiter, core.Rule{Name: "jobs", Limit: core.PerHour(1)})
		first, err := store.Allow("192.0.2.1")
		if !first || err != nil {
			t.Errorf("the first is refused: %v", err)
		}
		second, err := store.Allow("192.0.2.1")
		if second || echo.StatusCode(err) != 429 {
			t.Errorf("the second is %v: %v", second, err)
		}
		ctx := context.Background()
		if d, err := limiter.MustCounter("jobs", core.PerHour(1)).Peek(ctx, "ip:192.0.2.1"); err != nil || d.Remaining != 0 {
			t.Errorf("%d left: %v", d.Remaining, err)
		}
	})
}
