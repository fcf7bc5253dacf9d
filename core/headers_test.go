package core_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// parseList parses a structured-fields list (RFC 9651) of items strictly.
func parseList(t *testing.T, lines []string) (items []httpsfv.Item) {
	t.Helper()
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q is no list: %v", lines, err)
	}
	for _, member := range list {
		items = append(items, member.(httpsfv.Item))
	}
	return items
}

// entry is one item of RateLimit or RateLimit-Policy.
type entry struct {
	name string
	a, b int64 // q and w, or r and t
}

func parseEntries(t *testing.T, lines []string, a, b string) (entries []entry) {
	t.Helper()
	for _, item := range parseList(t, lines) {
		name, isString := item.Value.(string)
		first, _ := item.Params.Get(a)
		second, _ := item.Params.Get(b)
		x, isNumber := first.(int64)
		y, isNumberToo := second.(int64)
		if !isString || !isNumber || !isNumberToo || len(item.Params.Names()) != 2 {
			t.Fatalf("%q has an entry of another form", lines)
		}
		entries = append(entries, entry{name, x, y})
	}
	return entries
}

func equal(a, b []entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// headersOf returns the headers of one call for which the store returns these verdicts.
func headersOf(t *testing.T, options core.Options, rules []core.Rule, verdicts ...algorithm.Verdict) *fakeView {
	t.Helper()
	limiter := newLimiter(t, options)
	core.UseAnswers(limiter, verdicts...)
	v := newView("GET", "/")
	newGuard(t, limiter, rules...).Check(v)
	return v
}

func micros(d time.Duration) int64 { return d.Microseconds() }

var (
	wide   = core.Rule{Name: "wide", Seconds: 3600, MaxCount: 1000}
	narrow = core.Rule{Name: "narrow", Limit: core.Limit{Max: 5, Window: 1500 * time.Millisecond}}
	few    = algorithm.Verdict{Remaining: 4, ResetAfter: micros(1100 * time.Millisecond)}
	none   = algorithm.Verdict{RetryAfter: micros(200 * time.Millisecond), ResetAfter: micros(1500 * time.Millisecond)}
)

func xReset(t *testing.T, v *fakeView) int64 {
	t.Helper()
	reset, err := strconv.ParseInt(v.response.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return reset
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
