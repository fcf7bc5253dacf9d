package core_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// FuzzHeaders checks that what callers are shown is valid, whatever the names of a rule, its routes
// and its limits, and however the store answers. Headers are structured fields and plain numbers,
// from which the original values can be read, and have no control byte. A problem detail is JSON,
// and gives the limit the same name.
func FuzzHeaders(f *testing.F) {
	every := make([]byte, 256)
	for c := range every {
		every[c] = byte(c)
	}
	for style := range byte(5) {
		for _, some := range []string{string(every[:32]), string(every[32:64]), string(every[120:140])} {
			f.Add(style, "", "", "/"+some, byte(core.SlidingWindow), int64(60e6), int64(100), int64(0), int64(0), int64(1), int64(1))
		}
		f.Add(style, "api", "", "/users/:id", byte(core.SlidingWindow), int64(60e6), int64(100), int64(0), int64(99), int64(0), int64(61e6))
		f.Add(style, `say "hi" \`, "", "", byte(core.TokenBucket), int64(1e6), int64(10), int64(25), int64(0), int64(100_001), int64(1))
		f.Add(style, "", "/größe/**", "", byte(core.FixedWindow), int64(1000), int64(1), int64(0), int64(0), int64(1), int64(1))
		f.Add(style, "", "/\r\nSet-Cookie: a=b", "", byte(core.Concurrency), int64(30e6), int64(3), int64(0), int64(0), int64(1<<51), int64(1<<51))
		f.Add(style, "", "", "/a\r\nb: c\x00\xff\"", byte(core.SlidingLog), int64(1e6), int64(10_000), int64(0), int64(1), int64(0), int64(0))
		f.Add(style, "", "", strings.Repeat("\x7f", 1024), byte(core.CalendarWindow), int64(366*24*3600*1e6), int64(1e12), int64(0), int64(1e12), int64(0), int64(0))
		f.Add(style, "", "", "/a,b;q=1", byte(core.TokenBucket), int64(366*24*3600*1e6), int64(1), int64(70), int64(1), int64(0), int64(0))
	}
	styles := [...]core.HeaderStyle{
		core.HeadersDraft10, core.HeadersDraft7, core.HeadersXRateLimitDelta, core.HeadersDraft10 | core.HeadersXRateLimit, core.HeadersDraft11,
	}
	f.Fuzz(func(t *testing.T, style byte, name, path, route string, kind byte, window, most, burst, remaining, retry, reset int64) {
		if remaining < 0 || remaining > 1e12 || retry < 0 || retry > 1<<51 || reset < 0 || reset > 1<<51 {
			return // no store returns that: the longest wait is 71 years
		}
		options := core.Options{Headers: styles[int(style)%len(styles)], MaxKeys: 1}
		rule := core.Rule{Name: name, Limit: core.Limit{Max: int(most), Window: time.Duration(window) * time.Microsecond, Algorithm: core.Algorithm(kind), Burst: int(burst)}}
		view := newView("GET", route)
		if path != "" {
			rule.Paths, view.URLPath = []string{path, "/**"}, "/"
		}
		limiter := newLimiter(t, options)
		guard, err := limiter.Guard(rule)
		if err != nil {
			return // FuzzRule is about these
		}
		verdict := algorithm.Verdict{Remaining: remaining, RetryAfter: retry, ResetAfter: reset}
		core.UseAnswers(limiter, verdict)
		answer := guard.Check(view)
		if (answer.Refusal != nil) != (retry > 0) {
			t.Fatalf("retry after %d µs, and the refusal is %+v", retry, answer.Refusal)
		}
		received := receivedHeaders{t, rule, verdict, options.Headers, view.Response}
		title := received.check(rule.Limit.Burst)
		if answer.Refusal != nil {
			checkRefusal(t, answer.Refusal, title)
		}
	})
}

// receivedHeaders holds the headers that a caller receives for one call.
type receivedHeaders struct {
	*testing.T
	rule    core.Rule
	verdict algorithm.Verdict
	style   core.HeaderStyle
	header  http.Header
}

// check reads the headers back, and returns the limit's name in them, or "" if they have none.
func (h receivedHeaders) check(burst int) (title string) {
	h.Helper()
	checkLines(h.T, h.header)
	size := h.rule.Limit.Max
	span := h.rule.Limit.Window
	if h.rule.Limit.Algorithm == core.TokenBucket && burst != 0 {
		span = time.Duration(float64(span) / float64(size) * float64(burst))
		size = burst
	}
	wait := h.verdict.ResetAfter
	if h.verdict.RetryAfter > 0 {
		wait = h.verdict.RetryAfter
	}
	seconds := (wait + 999_999) / 1_000_000
	if h.style&(core.HeadersDraft10|core.HeadersDraft11) != 0 {
		title = h.checkLists(int64(size), max(1, ceilSeconds(span)), seconds)
	}
	// The older styles do not show such a limit.
	if h.rule.Limit.Algorithm == core.Concurrency && h.verdict.RetryAfter == 0 {
		if lines := len(h.header["X-Ratelimit-Limit"]); lines != 0 || h.style == core.HeadersDraft7 && len(h.header) != 0 {
			h.Errorf("%v", h.header)
		}
		return title
	}
	if h.style&core.HeadersDraft7 != 0 {
		limit, remaining, reset := strconv.Itoa(size), strconv.FormatInt(h.verdict.Remaining, 10), strconv.FormatInt(seconds, 10)
		if got, want := h.header.Get("RateLimit"), "limit="+limit+", remaining="+remaining+", reset="+reset; got != want {
			h.Errorf("RateLimit %q, want %q", got, want)
		}
		item := parseList(h.T, h.header["Ratelimit-Policy"])[0]
		if w, _ := item.Params.Get("w"); item.Value != int64(size) || w != max(1, ceilSeconds(span)) {
			h.Errorf("RateLimit-Policy %q, want %d in %v", h.header["Ratelimit-Policy"], size, span)
		}
	}
	if h.style&(core.HeadersXRateLimit|core.HeadersXRateLimitDelta) != 0 {
		if h.header.Get("X-RateLimit-Limit") != strconv.Itoa(size) || h.header.Get("X-RateLimit-Remaining") != strconv.FormatInt(h.verdict.Remaining, 10) {
			h.Errorf("%v, want %d of %d", h.header, h.verdict.Remaining, size)
		}
		if got := xReset(h.T, &fakeView{Response: h.header}); h.style == core.HeadersXRateLimitDelta && got != seconds || got < seconds {
			h.Errorf("X-RateLimit-Reset %d, want %d", got, seconds)
		}
	}
	return title
}

// checkLists reads the two lists strictly. Here they have one entry each.
func (h receivedHeaders) checkLists(size, span, seconds int64) (title string) {
	h.Helper()
	policy, limit := parseList(h.T, h.header["Ratelimit-Policy"]), parseList(h.T, h.header["Ratelimit"])
	if len(policy) != 1 || len(limit) != 1 || policy[0].Value != limit[0].Value {
		h.Fatalf("%v: not one entry of one name each", h.header)
	}
	want := map[string]any{"r": h.verdict.Remaining, "t": seconds, "q": size, "w": span}
	if h.rule.Limit.Algorithm == core.Concurrency {
		delete(want, "w")
		want["qu"] = "concurrent-requests"
		if h.verdict.RetryAfter == 0 {
			delete(want, "t")
		}
	}
	if h.style == core.HeadersDraft11 && (h.verdict.RetryAfter == 0 || h.verdict.Remaining > 0) {
		if want["t"], _ = limit[0].Params.Get("t"); want["t"] == nil {
			delete(want, "t") // when there is one, and which, is shown by other tests
		} else if t, _ := want["t"].(int64); t < 1 || h.verdict.RetryAfter > 0 && t > seconds {
			h.Errorf("t=%v, and the call was told to wait %d s", want["t"], seconds)
		}
	}
	for _, item := range []httpsfv.Item{policy[0], limit[0]} {
		for _, name := range item.Params.Names() {
			if got, _ := item.Params.Get(name); got != want[name] {
				h.Errorf("%v: %s is %v, want %v", h.header, name, got, want[name])
			}
			delete(want, name)
		}
	}
	if len(want) != 0 {
		h.Errorf("%v: without %v", h.header, want)
	}
	title = policy[0].Value.(string)
	if h.rule.Name != "" && title != h.rule.Name || title == "" || len(title) > 128 {
		h.Errorf("%q is shown as %q", h.rule.Name, title)
	}
	return title
}

// checkLines checks that a header has only printable ASCII, and so no end of a line.
func checkLines(t *testing.T, header http.Header) {
	t.Helper()
	for name, lines := range header {
		for _, line := range lines {
			for i := range len(line) {
				if line[i] < 0x20 || line[i] > 0x7e {
					t.Errorf("byte %#x in %s: %q", line[i], name, line)
				}
			}
		}
	}
}

// checkRefusal checks that a refusal's headers are printable too, and that its body is JSON and
// names the limit as the headers do.
func checkRefusal(t *testing.T, refusal *core.Refusal, title string) {
	t.Helper()
	header := http.Header{}
	refusal.SetHeader(header)
	checkLines(t, header)
	var problem struct {
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal(refusal.Body, &problem); err != nil || len(problem.Violated) != 1 {
		t.Fatalf("%v in %q", err, refusal.Body)
	}
	if title != "" && problem.Violated[0] != title {
		t.Errorf("%q in the header, %q in the problem", title, problem.Violated[0])
	}
	if wait, err := strconv.Atoi(header.Get("Retry-After")); err != nil || wait < 1 {
		t.Errorf("Retry-After %q", header.Get("Retry-After"))
	}
}
