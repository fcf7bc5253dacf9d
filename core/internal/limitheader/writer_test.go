package limitheader_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
)

// The tests of core show which limit binds a call. Here, it is the one with the fewest permits left.
func newWriter(style limitheader.Style) *limitheader.Writer {
	return &limitheader.Writer{Style: style, BindsMore: func(a, b *algorithm.Verdict, _, _ bool) bool { return a.Remaining < b.Remaining }}
}

var (
	wide   = limitheader.NewPolicy("wide", 1000, time.Hour, false)
	narrow = limitheader.NewPolicy("narrow", 5, 1500*time.Millisecond, false)
	slots  = limitheader.NewPolicy("slots", 2, time.Minute, true)
)

type limits = []limitheader.Limit

func limit(policy *limitheader.Policy, size int64, v algorithm.Verdict) limitheader.Limit {
	return limitheader.Limit{Policy: policy, Verdict: &v, Counter: &algorithm.Counter{Limit: &algorithm.Limit{Max: size}}}
}

func micros(d time.Duration) int64 { return d.Microseconds() }

// left returns a limit with so many permits left.
func left(policy *limitheader.Policy, size, n int64) limitheader.Limit {
	return limit(policy, size, algorithm.Verdict{Remaining: n, ResetAfter: micros(1100 * time.Millisecond)})
}

// write writes the headers of one reply.
func write(w *limitheader.Writer, to adapter.HeaderWriter, limits ...limitheader.Limit) {
	for _, l := range limits {
		w.Add(l)
	}
	w.Write(to, false)
}

func wantHeader(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	for name, value := range want {
		if !slices.Equal(got[name], []string{value}) {
			t.Errorf("%s: %q, want %q", name, got[name], value)
		}
	}
}

// The header lines of several responses share an array. If the owner of one response changes or
// adds a line, the other responses keep theirs.
func TestLinesDoNotOverlap(t *testing.T) {
	for _, style := range []limitheader.Style{limitheader.Draft10, limitheader.Draft10 | limitheader.XRateLimitDelta, limitheader.Draft7} {
		w := newWriter(style)
		var responses, copies [50]http.Header
		for i := range responses {
			responses[i] = http.Header{}
			write(w, responses[i], left(&wide, 1000, int64(999-i)))
			copies[i] = responses[i].Clone()
		}
		for i, response := range responses {
			for name, lines := range response {
				if !slices.Equal(lines, copies[i][name]) {
					t.Fatalf("style %d: %s of response %d is %q, was %q", style, name, i, lines, copies[i][name])
				}
				response.Add(name, "another")
				lines[0] = "changed"
			}
		}
	}
}

// Soft limits are shown if there are no others. The headers with room for one limit keep what an
// outer middleware wrote.
func TestSoftLimits(t *testing.T) {
	soft := left(&narrow, 5, 4)
	soft.Counter.Behind = 1
	w := newWriter(limitheader.Draft10 | limitheader.XRateLimitDelta)
	for range 2 {
		to := http.Header{}
		write(w, to, soft)
		wantHeader(t, to, map[string]string{
			"Ratelimit-Policy": `"narrow";q=5;w=2`, "Ratelimit": `"narrow";r=4;t=2`,
			"X-Ratelimit-Limit": "5", "X-Ratelimit-Remaining": "4", "X-Ratelimit-Reset": "2",
		})
		to = http.Header{}
		write(w, to, soft, left(&wide, 1000, 9), soft)
		want := map[string]string{
			"Ratelimit-Policy": `"wide";q=1000;w=3600`, "Ratelimit": `"wide";r=9;t=2`,
			"X-Ratelimit-Limit": "1000", "X-Ratelimit-Remaining": "9", "X-Ratelimit-Reset": "2",
		}
		wantHeader(t, to, want)
		write(newWriter(limitheader.XRateLimitDelta), to, soft)
		wantHeader(t, to, want)
	}
}

// Nothing is written about a call without limits.
func TestNoLimits(t *testing.T) {
	to := http.Header{}
	for style := range limitheader.None {
		write(newWriter(style), to)
	}
	wantHeader(t, to, nil)
}

// settable is a reply whose headers can only be set.
type settable struct{ header http.Header }

func (s settable) Set(name, value string) { s.header.Set(name, value) }
func (s settable) Add(name, value string) { s.header.Add(name, value) }

// copying is a reply that copies bytes, as fasthttp's does.
type copying struct{ settable }

func (c copying) Peek(name string) []byte             { return []byte(c.header.Get(name)) }
func (c copying) SetBytesV(name string, value []byte) { c.header.Set(name, string(value)) }
func (c copying) AddBytesV(name string, value []byte) { c.header.Add(name, string(value)) }

// gettable is a reply like that of gRPC.
type gettable struct{ settable }

func (g gettable) Get(name string) string { return g.header.Get(name) }

// Every kind of reply that can be read gets the same headers.
func TestKindsOfReplies(t *testing.T) {
	for _, style := range []limitheader.Style{limitheader.Draft10 | limitheader.XRateLimitDelta, limitheader.Draft7} {
		for name, kind := range map[string]func(http.Header) adapter.HeaderWriter{
			"copying": func(h http.Header) adapter.HeaderWriter { return copying{settable{h}} },
			"getting": func(h http.Header) adapter.HeaderWriter { return gettable{settable{h}} },
		} {
			got, want := http.Header{}, http.Header{}
			for _, l := range []limitheader.Limit{left(&narrow, 5, 4), left(&wide, 1000, 9)} {
				write(newWriter(style), kind(got), l)
				write(newWriter(style), want, l)
			}
			wantSame(t, name, got, want)
		}
	}
}

func wantSame(t *testing.T, name string, got, want http.Header) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
	for header, lines := range want {
		if !slices.Equal(got[header], lines) {
			t.Errorf("%s: %s is %q, want %q", name, header, got[header], lines)
		}
	}
}
