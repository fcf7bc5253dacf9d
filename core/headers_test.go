package core_test

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/internal/redistest"
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

func micros(d time.Duration) int64 { return d.Microseconds() }

var (
	wide = core.Rule{Name: "wide", Seconds: 3600, MaxCount: 1000}
	few  = algorithm.Verdict{Remaining: 4, ResetAfter: micros(1100 * time.Millisecond)}
)

func xReset(t *testing.T, v *fakeView) int64 {
	t.Helper()
	reset, err := strconv.ParseInt(v.Response.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return reset
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// newDraft11 returns a limiter in this process that sends HeadersDraft11, and its clock, at 22:00.
func newDraft11(t *testing.T, options core.Options) (limiter *core.Limiter, now *atomic.Int64) {
	t.Helper()
	options.Headers = core.HeadersDraft11
	limiter, now = newLimiter(t, options), new(atomic.Int64)
	now.Store(time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC).UnixMicro())
	core.UseClock(limiter, now.Load)
	return limiter, now
}

// Each call comes a second after the one before.
func TestDraft11(t *testing.T) {
	fixed := core.PerMinute(2).Fixed()
	banned := core.Rule{Name: "ban", Limit: core.PerMinute(1).Fixed(), Ban: core.Ban{After: 1, For: time.Hour}}
	for name, test := range map[string]struct {
		rules []core.Rule
		want  []string // RateLimit, and Retry-After if the call is refused
	}{
		"a sliding window":  {[]core.Rule{{Name: "a", Limit: core.PerMinute(3)}}, []string{`"a";r=2;t=61`, `"a";r=1`, `"a";r=0`, `"a";r=0;t=59 59`}},
		"a log":             {[]core.Rule{{Name: "a", Limit: core.PerMinute(2).Log()}}, []string{`"a";r=1;t=60`, `"a";r=0`, `"a";r=0;t=58 58`}},
		"a fixed window":    {[]core.Rule{{Name: "a", Limit: fixed}}, []string{`"a";r=1;t=60`, `"a";r=0;t=59`, `"a";r=0;t=58 58`}},
		"a bucket":          {[]core.Rule{{Name: "a", Limit: core.PerMinute(6).Bucket(2)}}, []string{`"a";r=1;t=10`, `"a";r=0;t=9`, `"a";r=0;t=8 8`}},
		"slots":             {[]core.Rule{{Name: "a", Limit: core.InFlight(1)}}, []string{`"a";r=0`, `"a";r=0;t=29 29`}},
		"several limits":    {[]core.Rule{{Name: "a", Limit: fixed, Also: []core.Limit{core.PerCalendarDay(9, "UTC")}}}, []string{`"a";r=1;t=60, "a-day";r=8;t=7200`, `"a";r=0;t=59, "a-day";r=7;t=7199`, `"a";r=0;t=58, "a-day";r=7 58`}},
		"a soft limit":      {[]core.Rule{{Name: "a", Limit: fixed, Mode: core.Soft}}, []string{`"a";r=1;t=60`, `"a";r=0;t=59`, `"a";r=0;t=58`}},
		"a soft and a hard": {[]core.Rule{{Name: "a", Limit: fixed, Mode: core.Soft}, {Name: "b", Limit: fixed}}, []string{`"b";r=1;t=60`}},
		"bytes":             {[]core.Rule{{Name: "a", Limit: core.PerMinute(10).Fixed(), Cost: core.CostBySize(1000)}}, []string{`"a";r=6000;t=60`}},
		"a lease":           {[]core.Rule{{Name: "a", Limit: fixed, Lease: 1}}, []string{`"a";r=1`, `"a";r=0`, `"a";r=0;t=58 58`}},
		"a ban":             {[]core.Rule{banned}, []string{`"ban";r=0;t=60`, `"ban";r=0;t=59 59`, `"ban";r=0;t=3599 3599`}},
	} {
		limiter, now := newDraft11(t, core.Options{})
		guard := newGuard(t, limiter, test.rules...)
		for i, want := range test.want {
			v := newView("GET", "/")
			v.BodySize = 3500
			if answer := guard.Check(v); answer.Refusal != nil {
				answer.Refusal.SetHeader(v.Response)
			}
			if got := strings.TrimSpace(v.Response.Get("RateLimit") + " " + v.Response.Get("Retry-After")); got != want {
				t.Errorf("%s, call %d: %s, want %s", name, i, got, want)
			}
			now.Add(time.Second.Microseconds())
		}
	}
}

// If a call is refused because a store does not answer, the limits that were asked have no time: it
// would end after Retry-After.
func TestDraft11WithoutAStore(t *testing.T) {
	limiter := newLimiter(t, core.Options{Headers: core.HeadersDraft11})
	core.UseAnswers(limiter, few, algorithm.Verdict{Err: errors.New("down")})
	failClosed, v := wide, newView("GET", "/")
	failClosed.OnStoreError = core.FailClosed
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "fixed", Limit: core.PerMinute(5).Fixed()}, failClosed), v, 503)
	if got := v.Response.Get("RateLimit"); got != `"fixed";r=4` {
		t.Error(got)
	}
}

// Rules of one name on one guard get headers of their own.
func TestHeadersOfRulesWithOneName(t *testing.T) {
	rule, v := named("api", core.PerMinute(5)), newView("GET", "/")
	wantStatus(t, newGuard(t, newLimiter(t, core.Options{}), rule, change(rule, func(r *core.Rule) { r.Key = core.Global })), v, 200)
	if got := parseList(t, v.Response["Ratelimit"]); len(got) != 2 || got[0].Value == got[1].Value {
		t.Errorf("%v", v.Response)
	}
}

// While a refusal by one shard is repeated, the response says nothing about limits on the others,
// because they are not asked.
func TestARepeatedRefusalShowsItsOwnShardOnly(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	nodes, limiter := ring.Nodes(), newLimiter(t, core.Options{Redis: ring.Client(t), Timeout: patient})
	guard := newGuard(t, limiter,
		core.Rule{Name: "shared", Seconds: 3600, MaxCount: 10, Key: key(subjectOn(t, nodes[1], limiter, "shared"))},
		core.Rule{Name: "own", Seconds: 3600, MaxCount: 1, Key: key(subjectOn(t, nodes[0], limiter, "own"))})
	wantStatus(t, guard, newView("GET", "/"), 200)
	for i, source := range []core.Source{core.FromRedis, core.FromDenyCache} {
		v := newView("GET", "/")
		refusal := wantStatus(t, guard, v, 429).Refusal
		d := refusal.Decision
		if d.Rule != "own" || d.Reason != core.LimitExceeded || d.Source != source || d.RetryAfter <= 0 || len(refusal.Violated) != 1 {
			t.Errorf("%+v", refusal)
		}
		if lines := parseList(t, v.Response["Ratelimit"]); len(lines) != 2-i || len(parseList(t, v.Response["Ratelimit-Policy"])) != 2-i {
			t.Errorf("from %s the headers show %v", source, v.Response)
		}
		if i == 0 && (len(d.All) != 2 || d.All[1].Remaining != 9) || i == 1 && d.All != nil {
			t.Errorf("from %s: %+v", source, d.All)
		}
	}
}
