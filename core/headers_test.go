package core_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
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

var draft7 = regexp.MustCompile(`^limit=(\d+), remaining=(\d+), reset=(\d+)$`)

func xReset(t *testing.T, v *fakeView) int64 {
	t.Helper()
	reset, err := strconv.ParseInt(v.response.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return reset
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func TestHeadersOfEachStyle(t *testing.T) {
	const list, x = "Ratelimit Ratelimit-Policy", "X-Ratelimit-Limit X-Ratelimit-Remaining X-Ratelimit-Reset"
	for style, want := range map[core.HeaderStyle]string{
		0: list, core.HeadersDraft10: list, core.HeadersDraft7: list, core.HeadersXRateLimit: x, core.HeadersXRateLimitDelta: x,
		core.HeadersDraft10 | core.HeadersXRateLimit: list + " " + x,
		core.HeadersDraft11:                          list, core.HeadersDraft11 | core.HeadersXRateLimitDelta: list + " " + x,
		core.HeadersDraft7 | core.HeadersXRateLimitDelta: list + " " + x, core.NoHeaders: "",
	} {
		for _, verdict := range []algorithm.Verdict{few, none} {
			v := headersOf(t, core.Options{Headers: style}, []core.Rule{narrow}, verdict)
			names := make([]string, 0, 5)
			for name := range v.response {
				names = append(names, name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want {
				t.Errorf("style %d: %s, want %s", style, got, want)
			}
		}
	}
}

// Headers with room for one limit describe the one that binds, whichever of the stacked middlewares
// it belongs to. If somebody else wrote a value that describes no limit, it is replaced.
func TestOlderHeadersOfStackedLimiters(t *testing.T) {
	few := core.Rule{Name: "few", Limit: core.PerMinute(3).Fixed()}
	late := core.Rule{Name: "late", Limit: core.Limit{Max: 3, Window: 600 * time.Second}.Fixed()}
	for _, test := range []struct {
		name         string
		outer, inner core.Rule
		want, policy string
	}{
		{"the outer has less left", few, wide, "limit=3, remaining=2, reset=60", "3;w=60"},
		{"the inner has less left", wide, few, "limit=3, remaining=2, reset=60", "3;w=60"},
		{"the outer comes back later", late, few, "limit=3, remaining=2, reset=600", "3;w=600"},
		{"the inner comes back later", few, late, "limit=3, remaining=2, reset=600", "3;w=600"},
		{"they are alike", few, few, "limit=3, remaining=1, reset=60", "3;w=60"},
	} {
		for _, style := range []core.HeaderStyle{core.HeadersXRateLimitDelta, core.HeadersXRateLimit} {
			limiter := newLimiter(t, core.Options{Headers: core.HeadersDraft7 | style})
			v := newView("GET", "/")
			v.response.Set("X-RateLimit-Limit", "7")
			v.response.Set("RateLimit", "limit=7, remaining=none, reset=0")
			wantStatus(t, newGuard(t, limiter, test.outer), v, 200)
			wantStatus(t, newGuard(t, limiter, test.inner), v, 200)
			if got := v.response["Ratelimit"]; !slices.Equal(got, []string{test.want}) {
				t.Errorf("%s: RateLimit %q, want %s", test.name, got, test.want)
			}
			if got := v.response["Ratelimit-Policy"]; !slices.Equal(got, []string{test.policy}) {
				t.Errorf("%s: RateLimit-Policy %q, want %s", test.name, got, test.policy)
			}
			match := draft7.FindStringSubmatch(test.want)
			if got := v.response; len(got["X-Ratelimit-Limit"]) != 1 || got.Get("X-Ratelimit-Limit") != match[1] || got.Get("X-Ratelimit-Remaining") != match[2] {
				t.Errorf("%s: %v, want %s", test.name, got, test.want)
			}
			if got := v.response.Get("X-Ratelimit-Reset"); style == core.HeadersXRateLimitDelta && got != match[3] {
				t.Errorf("%s: X-RateLimit-Reset %s, want %s", test.name, got, match[3])
			}
		}
	}
}
