//go:build !race

package ginlimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/ginlimit"
)

// The race detector makes sync.Pool forget at random, so allocations are counted without it.

// TestAllocations checks that the middleware adds less than one allocation to an allowed call: the
// values of its headers are allocated for several calls at once.
func TestAllocations(t *testing.T) {
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	gin.SetMode(gin.TestMode)
	router := gin.New()
	router.GET("/bare", func(*gin.Context) {})
	router.GET("/limited", ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 1e9}), func(*gin.Context) {})
	w := &discard{header: make(http.Header)}
	allocs := func(path string) float64 {
		r := httptest.NewRequest("GET", path, nil)
		return testing.AllocsPerRun(1000, func() {
			clear(w.header)
			router.ServeHTTP(w, r)
		})
	}
	if added := allocs("/limited") - allocs("/bare"); added > 0 {
		t.Errorf("%v allocations, want none", added)
	}
}
