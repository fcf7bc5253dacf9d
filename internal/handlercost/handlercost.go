// Package handlercost measures what a middleware adds to a handler that does nothing, without a
// server. The handler under test serves /bare without the middleware, and /limited with it.
package handlercost

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Discard is a ResponseWriter that keeps nothing but its headers.
type Discard struct{ Headers http.Header }

// NewDiscard returns a Discard without headers.
func NewDiscard() *Discard { return &Discard{make(http.Header)} }

// Header implements http.ResponseWriter.
func (d *Discard) Header() http.Header { return d.Headers }

// Write implements http.ResponseWriter.
func (d *Discard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (d *Discard) WriteHeader(int) {}

// WantAllocs checks how many allocations the middleware adds to an allowed call, at most. The race
// detector makes sync.Pool forget at random, so a test that calls it is built without it.
func WantAllocs(t *testing.T, handler http.Handler, most float64) {
	t.Helper()
	if added := allocs(handler, "/limited") - allocs(handler, "/bare"); added > most {
		t.Errorf("the middleware adds %v allocations, want at most %v", added, most)
	}
}

func allocs(handler http.Handler, path string) float64 {
	w, r := NewDiscard(), httptest.NewRequest("GET", path, nil)
	return testing.AllocsPerRun(1000, func() {
		clear(w.Headers)
		handler.ServeHTTP(w, r)
	})
}

// Benchmark measures a call of each path.
func Benchmark(b *testing.B, handler http.Handler, paths ...string) {
	for _, path := range paths {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w, r := NewDiscard(), httptest.NewRequest("GET", path, nil)
				for pb.Next() {
					clear(w.Headers)
					handler.ServeHTTP(w, r)
				}
			})
		})
	}
}
