package core_test

import (
	"net/http"
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

func TestDraft10(t *testing.T) {
	api := core.Rule{Name: "api", Seconds: 60, MaxCount: 100}
	short := core.Rule{Name: "short", Limit: core.Limit{Max: 10, Window: 50 * time.Millisecond}}
	bucket := core.Rule{Name: "bucket", Limit: core.PerSecond(10).Bucket(25)}
	third := core.Rule{Name: "third", Limit: core.PerSecond(3).Bucket(0)}
	allowed := algorithm.Verdict{Remaining: 99, ResetAfter: micros(59_000_001 * time.Microsecond)}
	over := algorithm.Verdict{RetryAfter: 1, ResetAfter: micros(40 * time.Millisecond)}
	for _, test := range []struct {
		name     string
		rules    []core.Rule
		verdicts []algorithm.Verdict
		policy   []entry
		limit    []entry
	}{
		{"bucket", []core.Rule{bucket}, []algorithm.Verdict{{Remaining: 24, ResetAfter: micros(100 * time.Millisecond)}},
			[]entry{{"bucket", 25, 3}}, []entry{{"bucket", 24, 1}}},
		{"bucket that does not divide", []core.Rule{third}, []algorithm.Verdict{{Remaining: 2, ResetAfter: 333_334}},
			[]entry{{"third", 3, 1}}, []entry{{"third", 2, 1}}},
		{"several limits", []core.Rule{api, bucket, short}, []algorithm.Verdict{allowed, {Remaining: 7, ResetAfter: 1}, over},
			[]entry{{"api", 100, 60}, {"bucket", 25, 3}, {"short", 10, 1}}, []entry{{"api", 99, 60}, {"bucket", 7, 1}, {"short", 0, 1}}},
		{"largest numbers", []core.Rule{{Name: "api", Limit: core.Limit{Max: mostPermits, Window: 366 * 24 * time.Hour}}},
			[]algorithm.Verdict{{Remaining: mostPermits - 1, ResetAfter: micros(378 * 24 * time.Hour)}},
			[]entry{{"api", mostPermits, 31622400}}, []entry{{"api", mostPermits - 1, 32659200}}},
		{"only one was answered", []core.Rule{api, bucket}, []algorithm.Verdict{{Err: errVerify}, {Remaining: 1, ResetAfter: 1}},
			[]entry{{"bucket", 25, 3}}, []entry{{"bucket", 1, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := headersOf(t, core.Options{}, test.rules, test.verdicts...)
			if got := parseEntries(t, v.response["Ratelimit-Policy"], "q", "w"); !equal(got, test.policy) {
				t.Errorf("RateLimit-Policy %v, want %v", got, test.policy)
			}
			if got := parseEntries(t, v.response["Ratelimit"], "r", "t"); !equal(got, test.limit) {
				t.Errorf("RateLimit %v, want %v", got, test.limit)
			}
			if len(v.response) != 2 || len(v.response["Ratelimit"]) != 1 || len(v.response["Ratelimit-Policy"]) != 1 {
				t.Errorf("%v", v.response)
			}
		})
	}
}

// The header and the problem's violated-policies give a limit the same name, whatever characters it
// has.
func TestNamesSurviveTheHeader(t *testing.T) {
	for _, rule := range []core.Rule{
		{Name: `say "hi" \ there`}, {Name: `"`}, {Name: `\`}, {Name: ` a;r=9, "b"`}, {Name: "100%"},
		{Paths: []string{"/"}}, {Paths: []string{"/größe/**", "/**"}}, {Paths: []string{"/\x00\xff", "/**"}},
	} {
		rule.Seconds = 60
		v := newView("GET", "/")
		limiter := newLimiter(t, core.Options{})
		core.UseAnswers(limiter, algorithm.Verdict{RetryAfter: 1})
		answer := wantStatus(t, newGuard(t, limiter, rule), v, 429)
		names := parseEntries(t, v.response["Ratelimit"], "r", "t")
		policies := parseEntries(t, v.response["Ratelimit-Policy"], "q", "w")
		if len(names) != 1 || len(policies) != 1 || names[0].name != policies[0].name {
			t.Fatalf("%v, %v", names, policies)
		}
		if rule.Name != "" && names[0].name != rule.Name {
			t.Errorf("%q arrives as %q", rule.Name, names[0].name)
		}
		if names[0].name != answer.Refusal.Violated[0] {
			t.Errorf("%q in the header, %q in the problem", names[0].name, answer.Refusal.Violated[0])
		}
	}
}

// Limiters that stack each have their entry. So does a limit in the handler.
func TestStackedLimitersAddUp(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	v := newView("GET", "/")
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "outer", Seconds: 60, MaxCount: 9}), v, 200)
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "inner", Seconds: 60, MaxCount: 5}), v, 200)
	if got := status(checkRule(limiter, v, core.Rule{Name: "own", Seconds: 60, MaxCount: 3}, "a")); got != 200 {
		t.Fatal(got)
	}
	if got := parseEntries(t, v.response["Ratelimit-Policy"], "q", "w"); !equal(got, []entry{{"outer", 9, 60}, {"inner", 5, 60}, {"own", 3, 60}}) {
		t.Errorf("RateLimit-Policy %v", got)
	}
	got := parseEntries(t, v.response["Ratelimit"], "r", "t")
	for i, want := range []entry{{"outer", 8, 0}, {"inner", 4, 0}, {"own", 2, 0}} {
		if len(got) != 3 || got[i].name != want.name || got[i].a != want.a {
			t.Fatalf("RateLimit %v", got)
		}
	}
}

var (
	wide   = core.Rule{Name: "wide", Seconds: 3600, MaxCount: 1000}
	narrow = core.Rule{Name: "narrow", Limit: core.Limit{Max: 5, Window: 1500 * time.Millisecond}}
	left   = algorithm.Verdict{Remaining: 900, ResetAfter: micros(time.Hour)}
	few    = algorithm.Verdict{Remaining: 4, ResetAfter: micros(1100 * time.Millisecond)}
	none   = algorithm.Verdict{RetryAfter: micros(200 * time.Millisecond), ResetAfter: micros(1500 * time.Millisecond)}
)

var draft7 = regexp.MustCompile(`^limit=(\d+), remaining=(\d+), reset=(\d+)$`)

func TestDraft7ShowsTheLimitThatBinds(t *testing.T) {
	bucket := core.Rule{Name: "bucket", Limit: core.PerSecond(10).Bucket(25)}
	for _, test := range []struct {
		name     string
		rules    []core.Rule
		verdicts []algorithm.Verdict
		policy   string
		limit    []string
	}{
		{"allowed", []core.Rule{wide}, []algorithm.Verdict{left}, "1000;w=3600", []string{"1000", "900", "3600"}},
		{"the fewest left", []core.Rule{wide, narrow}, []algorithm.Verdict{left, few}, "5;w=2", []string{"5", "4", "2"}},
		{"refused", []core.Rule{wide, narrow}, []algorithm.Verdict{left, none}, "5;w=2", []string{"5", "0", "1"}},
		{"bucket", []core.Rule{bucket}, []algorithm.Verdict{{Remaining: 24, ResetAfter: 1}}, "25;w=3", []string{"25", "24", "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := headersOf(t, core.Options{Headers: core.HeadersDraft7}, test.rules, test.verdicts...)
			if got := draft7.FindStringSubmatch(v.response.Get("RateLimit")); !slices.Equal(got[1:], test.limit) {
				t.Errorf("RateLimit %v, want %v", got, test.limit)
			}
			if got := v.response["Ratelimit-Policy"]; !slices.Equal(got, []string{test.policy}) || len(v.response) != 2 {
				t.Errorf("%v", v.response)
			}
			for _, item := range parseList(t, v.response["Ratelimit-Policy"]) {
				if _, isNumber := item.Value.(int64); !isNumber {
					t.Errorf("%v", item.Value)
				}
			}
		})
	}
}

func wantX(t *testing.T, v *fakeView, limit, remaining string) {
	t.Helper()
	if got := v.response; got.Get("X-RateLimit-Limit") != limit || got.Get("X-RateLimit-Remaining") != remaining || len(got) != 3 {
		t.Errorf("%v, want limit %s and remaining %s", got, limit, remaining)
	}
}

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
		core.HeadersDraft10 | core.HeadersXRateLimit:     list + " " + x,
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

// A refusal is shown even if a limit around it has no permits left either: the caller waits for
// this one.
func TestOlderHeadersOfARefusalInside(t *testing.T) {
	limiter := newLimiter(t, core.Options{Headers: core.HeadersDraft7 | core.HeadersXRateLimitDelta})
	v := newView("GET", "/")
	last := core.Rule{Name: "last", Limit: core.PerMinute(1).Fixed()}
	wantStatus(t, newGuard(t, limiter, last), v, 200)
	core.UseAnswers(limiter, algorithm.Verdict{RetryAfter: micros(9 * time.Second)})
	wantStatus(t, newGuard(t, limiter, narrow), v, 429)
	if got := v.response["Ratelimit"]; !slices.Equal(got, []string{"limit=5, remaining=0, reset=9"}) {
		t.Errorf("RateLimit %q", got)
	}
	wantX(t, &fakeView{response: http.Header{
		"X-Ratelimit-Limit": v.response["X-Ratelimit-Limit"], "X-Ratelimit-Remaining": v.response["X-Ratelimit-Remaining"],
		"X-Ratelimit-Reset": v.response["X-Ratelimit-Reset"],
	}}, "5", "0")
}

// Headers do not show a limit that was not counted, but the one that was.
func TestOlderHeadersOmitLimitsThatWereNotCounted(t *testing.T) {
	for _, policy := range []core.StorePolicy{core.FailOpen, core.FailClosed} {
		lost := core.Rule{Name: "lost", Seconds: 60, MaxCount: 7, OnStoreError: policy}
		v := headersOf(t, core.Options{Headers: core.HeadersXRateLimitDelta}, []core.Rule{lost, wide}, algorithm.Verdict{Err: errVerify}, left)
		wantX(t, v, "1000", "900")
		v = headersOf(t, core.Options{Headers: core.HeadersDraft7}, []core.Rule{lost, wide}, algorithm.Verdict{Err: errVerify}, left)
		if got := v.response.Get("RateLimit"); got != "limit=1000, remaining=900, reset=3600" {
			t.Errorf("%v: RateLimit %s", policy, got)
		}
	}
}
