package core_test

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

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
			v := told(t, core.Options{Headers: core.HeadersDraft7}, test.rules, test.verdicts...)
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

func TestXRateLimit(t *testing.T) {
	for _, test := range []struct {
		name             string
		verdicts         []algorithm.Verdict
		limit, remaining string
		reset            time.Duration
	}{
		{"allowed", []algorithm.Verdict{left, few}, "5", "4", 1100 * time.Millisecond},
		{"refused", []algorithm.Verdict{left, none}, "5", "0", 200 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := told(t, core.Options{Headers: core.HeadersXRateLimitDelta}, []core.Rule{wide, narrow}, test.verdicts...)
			wantX(t, v, test.limit, test.remaining)
			if got := xReset(t, v); got != ceilSeconds(test.reset) {
				t.Errorf("X-RateLimit-Reset %d, in seconds left want %d", got, ceilSeconds(test.reset))
			}
			v = told(t, core.Options{Headers: core.HeadersXRateLimit}, []core.Rule{wide, narrow}, test.verdicts...)
			wantX(t, v, test.limit, test.remaining)
		})
	}
}

// In unix seconds it is the first whole second at which the wait is over: neither earlier nor one
// more.
func TestXRateLimitResetInUnixSeconds(t *testing.T) {
	for i := range 20 {
		// The wait ends shortly before a whole second, where rounding up twice would show.
		wait := 3*time.Second - time.Duration(time.Now().UnixNano())%time.Second - time.Duration(i)*10*time.Millisecond
		before := time.Now()
		v := told(t, core.Options{Headers: core.HeadersXRateLimit}, []core.Rule{narrow}, algorithm.Verdict{RetryAfter: micros(wait)})
		after := time.Now()
		earliest := ceilSeconds(time.Duration(before.Add(wait.Truncate(time.Microsecond)).UnixNano()))
		latest := ceilSeconds(time.Duration(after.Add(wait).UnixNano()))
		if got := xReset(t, v); got < earliest || got > latest {
			t.Fatalf("X-RateLimit-Reset %d, want %d to %d", got, earliest, latest)
		}
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

func TestWhichHeadersAStyleWrites(t *testing.T) {
	const list, x = "Ratelimit Ratelimit-Policy", "X-Ratelimit-Limit X-Ratelimit-Remaining X-Ratelimit-Reset"
	for style, want := range map[core.HeaderStyle]string{
		0: list, core.HeadersDraft10: list, core.HeadersDraft7: list, core.HeadersXRateLimit: x, core.HeadersXRateLimitDelta: x,
		core.HeadersDraft10 | core.HeadersXRateLimit:     list + " " + x,
		core.HeadersDraft7 | core.HeadersXRateLimitDelta: list + " " + x, core.NoHeaders: "",
	} {
		for _, verdict := range []algorithm.Verdict{few, none} {
			v := told(t, core.Options{Headers: style}, []core.Rule{narrow}, verdict)
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

// Headers with room for one limit describe the one that binds, whichever of the middlewares that
// stack it belongs to. A value of somebody else's that describes no limit is replaced.
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

// A refusal is told even if a limit around it has none left either: the caller waits for this one.
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

// A limit that nobody counted says nothing: the headers are of the one that was.
func TestOlderHeadersLeaveOutWhatWasNotCounted(t *testing.T) {
	for _, policy := range []core.StorePolicy{core.FailOpen, core.FailClosed} {
		lost := core.Rule{Name: "lost", Seconds: 60, MaxCount: 7, OnStoreError: policy}
		v := told(t, core.Options{Headers: core.HeadersXRateLimitDelta}, []core.Rule{lost, wide}, algorithm.Verdict{Err: errVerify}, left)
		wantX(t, v, "1000", "900")
		v = told(t, core.Options{Headers: core.HeadersDraft7}, []core.Rule{lost, wide}, algorithm.Verdict{Err: errVerify}, left)
		if got := v.response.Get("RateLimit"); got != "limit=1000, remaining=900, reset=3600" {
			t.Errorf("%v: RateLimit %s", policy, got)
		}
	}
}
