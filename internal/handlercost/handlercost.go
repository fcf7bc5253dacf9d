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

// Caller returns a function that makes one call of a path, and that no two goroutines use.
type Caller func(path string) (call func())

// Of returns the Caller of a handler.
func Of(handler http.Handler) Caller {
	return func(path string) func() {
		w, r := NewDiscard(), httptest.NewRequest("GET", path, nil)
		return func() {
			clear(w.Headers)
			handler.ServeHTTP(w, r)
		}
	}
}

// WantAllocs checks how many allocations the middleware adds to an allowed call, at most. The race
// detector makes sync.Pool forget at random, so with it they are not compared.
func WantAllocs(t *testing.T, of Caller, most float64) {
	t.Helper()
	limited, bare := testing.AllocsPerRun(1000, of("/limited")), testing.AllocsPerRun(1000, of("/bare"))
	if added := limited - bare; added > most && !raceDetector {
		t.Errorf("the middleware adds %v allocations, want at most %v", added, most)
	}
}

// Benchmark measures a call of each path.
func Benchmark(b *testing.B, of Caller, paths ...string) {
	for _, path := range paths {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for call := of(path); pb.Next(); {
					call()
				}
			})
		})
	}
}
