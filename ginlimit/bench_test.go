package ginlimit_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/ginlimit"
	"github.com/accesslimit/accesslimit/internal/handlercost"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers, and with the same rule in the handler.
func BenchmarkMiddleware(b *testing.B) {
	handlercost.Benchmark(b, measured(b), "/bare", "/limited", "/checked")
}

// The values of headers are allocated for several calls at once.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 0) }

// measured returns a router with handlers that do nothing else.
func measured(t testing.TB) handlercost.Caller {
	limiter := limitertest.New(t, core.Options{})
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.GET("/bare", func(*gin.Context) {})
	router.GET("/limited", ginlimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)}), func(*gin.Context) {})
	check := limiter.MustCheck(core.Rule{Name: "check", Limit: core.PerSecond(1e9).Bucket(0)})
	router.GET("/checked", func(c *gin.Context) { ginlimit.Allow(c, check, "account:carol") })
	return handlercost.Of(router)
}
