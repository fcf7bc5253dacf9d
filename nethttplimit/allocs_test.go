//go:build !race

package nethttplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

// TestAllocations checks the allocations that the middleware adds to an allowed call: the value of
// RateLimit, and the lines of the two headers together.
func TestAllocations(t *testing.T) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	handler := nethttplimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 1e9})(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("GET", "/", nil)
	w := &discard{header: make(http.Header)}
	allocs := testing.AllocsPerRun(1000, func() {
		clear(w.header)
		handler.ServeHTTP(w, r)
	})
	if allocs > 2 {
		t.Errorf("%v allocations, want at most 2", allocs)
	}
}
