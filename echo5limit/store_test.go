package echo5limit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// The identifier is the subject, and never in the clear. The address that echo finds, here the
// proxy's, and an empty identifier stand for the rule's own key.
func TestStoreIdentifier(t *testing.T) {
	limiter := extensiontest.NewLimiter(t, core.Options{Expose: true, ClientIP: core.ClientIP{TrustedProxies: []string{"192.0.2.1"}}})
	key := func(config middleware.RateLimiterConfig, query string) string {
		e := stored(config, limiter, core.Rule{Name: "api", Limit: core.PerHour(100)})
		e.GET("/key", func(c *echo.Context) error {
			d, _ := core.DecisionFrom(c.Request().Context())
			return c.String(http.StatusOK, d.Key)
		})
		r := httptest.NewRequest("GET", "/key?"+query, nil)
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Body.String()
	}
	byAccount := middleware.RateLimiterConfig{
		IdentifierExtractor: func(c *echo.Context) (string, error) { return c.QueryParam("account"), nil },
	}
	for _, account := range []string{"carol", "203.0.113.7", "ip:203.0.113.7"} {
		if got, want := key(byAccount, "account="+account), "identifier:"+core.Digest(account); got != want {
			t.Errorf("%s: key %q, want %q", account, got, want)
		}
	}
	const client = "ip:203.0.113.7"
	if byDefault, byNone := key(middleware.RateLimiterConfig{}, ""), key(byAccount, ""); byDefault != client || byNone != client {
		t.Errorf("keys %q and, without an identifier, %q; want %q", byDefault, byNone, client)
	}
}

// Replacing echo's own store by this one leaves results, replies and headers the same. The steps of
// the clock are such that no call comes at the moment when a permit does.
func TestStoreAnswersAsEchosOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := extensiontest.NewLimiter(t, core.Options{Headers: core.HeadersXRateLimit})
		defer limiter.Close()
		served := func(store middleware.RateLimiterStore) *echo.Echo {
			e := newEcho(echo.RouterConfig{})
			e.Use(middleware.RateLimiterWithConfig(middleware.RateLimiterConfig{Store: store, IdentifierExtractor: header("id")}))
			e.GET("/a", func(c *echo.Context) error { return c.String(http.StatusOK, "ok") })
			return e
		}
		type result struct {
			allowed                        bool
			err                            error
			code                           int
			body, limit, remaining, waited string
		}
		answers := func(name string, stores ...middleware.RateLimiterStore) result {
			allowed, err := stores[0].Allow(name)
			r := httptest.NewRequest("GET", "/a", nil)
			r.Header.Set("id", name)
			w := httptest.NewRecorder()
			served(stores[1]).ServeHTTP(w, r)
			h := w.Header()
			return result{allowed, err, w.Code, w.Body.String(), h.Get("X-Ratelimit-Limit"), h.Get("X-Ratelimit-Remaining"), h.Get("Retry-After")}
		}
		own := func() middleware.RateLimiterStore {
			return middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{Rate: 1, Burst: 3})
		}
		ours := func(name string) middleware.RateLimiterStore {
			return echo5limit.NewStore(limiter, core.Rule{Name: name, Limit: core.PerSecond(1).Bucket(3)})
		}
		theirs, mine := []middleware.RateLimiterStore{own(), own()}, []middleware.RateLimiterStore{ours("allow"), ours("served")}
		for i := range 48 {
			name := []string{"a", "a", "a", "b"}[i%4]
			if got, want := answers(name, mine...), answers(name, theirs...); got != want {
				t.Errorf("call %d: %+v, want %+v", i, got, want)
			}
			time.Sleep(190 * time.Millisecond)
		}
	})
}

// header extracts an identifier from a header.
func header(name string) middleware.Extractor {
	return func(c *echo.Context) (string, error) { return c.Request().Header.Get(name), nil }
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
		if second || err != nil {
			t.Errorf("the second is %v: %v, want a refusal without an error", second, err)
		}
		ctx := context.Background()
		if d, err := limiter.MustCounter("jobs", core.PerHour(1)).Peek(ctx, "identifier:"+core.Digest("192.0.2.1")); err != nil || d.Remaining != 0 {
			t.Errorf("%d left: %v", d.Remaining, err)
		}
	})
}
