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

// TestAllocations checks that the middleware adds less than one allocation to an allowed call: the
// values of its headers are allocated for several calls at once.
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
	if allocs > 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
