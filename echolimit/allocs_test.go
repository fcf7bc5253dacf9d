//go:build !race

package echolimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/echolimit"
)

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

// TestAllocations checks the allocations that the middleware adds to an allowed call: the one that
// echo itself needs to put a middleware around a handler. The values of headers are allocated for
// several calls at once.
func TestAllocations(t *testing.T) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	router, handler := echo.New(), func(echo.Context) error { return nil }
	router.GET("/bare", handler)
	router.GET("/limited", handler, echolimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 1e9}))
	w := &discard{header: make(http.Header)}
	allocs := func(path string) float64 {
		r := httptest.NewRequest("GET", path, nil)
		return testing.AllocsPerRun(1000, func() {
			clear(w.header)
			router.ServeHTTP(w, r)
		})
	}
	if added := allocs("/limited") - allocs("/bare"); added > 1 {
		t.Errorf("%v allocations, want at most 1", added)
	}
}
