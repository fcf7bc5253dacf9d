package nethttplimit_test

import (
	"net/http"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/handlercost"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// BenchmarkMiddleware measures a call in this process, with and without the middleware, which sends
// its headers.
func BenchmarkMiddleware(b *testing.B) { handlercost.Benchmark(b, measured(b), "/bare", "/limited") }

// The values of headers are allocated for several calls at once.
func TestAllocations(t *testing.T) { handlercost.WantAllocs(t, measured(t), 0) }

// measured returns handlers that do nothing.
func measured(t testing.TB) handlercost.Caller {
	limiter := limitertest.New(t, core.Options{})
	bare := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := http.NewServeMux()
	mux.Handle("/bare", bare)
	mux.Handle("/limited", nethttplimit.New(limiter, core.Rule{Name: "api", Limit: core.PerSecond(1e9).Bucket(0)})(bare))
	return handlercost.Of(mux)
}
