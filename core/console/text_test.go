package console

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// Whatever a name is, its shown form is of printable characters, and means the same name.
func FuzzShow(f *testing.F) {
	for _, text := range []string{
		"", "user:alice", "ip:2001:db8::/64", `"`, `"quoted"`, " x", "\x00\xff", "\u202eabc", "é", "\ufffd", "a\nb", "<img src=x onerror=alert(1)>", `\x00`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := show(text)
		if !quote.Printable(shown) {
			t.Errorf("show(%q) is %q, which cannot be printed", text, shown)
		}
		if again, err := parse(shown); err != nil || again != text {
			t.Errorf("show(%q) is %q, which means %q, %v", text, shown, again, err)
		}
	})
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		show("user:alice"): "user:alice", show("a b"): "a b", show("\xff"): `"\xff"`, show(" a"): `" a"`, show(`"a"`): `"\"a\""`,
		show("\u202ea"): `"\u202ea"`,

		readable("two\nlines"): "two\nlines", readable("a\x00\"b"): `a\x00\"b`,

		span(0): "0s", span(1234567 * time.Nanosecond): "1.23ms", span(time.Second): "1 s", span(90 * time.Second): "1 min 30 s",
		span(2 * time.Hour): "2 h", span(25 * time.Hour): "1 day 1 h", span(72*time.Hour + time.Minute): "3 days", span(-time.Minute): "-1 min",

		number(0): "0", number(999): "999", number(1000): "1,000", number(math.MaxUint64): "18,446,744,073,709,551,615",

		rate(0): "0", rate(0.04): "0", rate(0.3): "0.3", rate(2): "2", rate(9.94): "9.9", rate(9.96): "10", rate(1234.5): "1,235",

		moment(time.Time{}): "", moment(time.Unix(0, 0)): "1970-01-01 00:00:00 UTC",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The words about an error report whether the other parts may work.
func TestProblems(t *testing.T) {
	noRight := errors.New("NOPERM User ops has no permissions to run the 'xrevrange' command")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("wrong\x00"), `wrong\x00`},
		{&core.StoreError{Class: core.StoreRefused, Err: noRight}, "Redis refuses this part. Other parts may work: " + noRight.Error()},
		{&core.StoreError{Class: core.StoreTimeout, Err: errors.New("late")}, "Redis did not answer (timeout): late"},
	} {
		if got := problem(c.err); got != c.want {
			t.Errorf("problem(%v) is %q, want %q", c.err, got, c.want)
		}
	}
}

// Sums of the counts are those of the reasons.
func TestCounts(t *testing.T) {
	var all counts
	for i, reason := range []core.Reason{
		core.Allowed, core.LimitExceeded, core.Banned, core.Blocked, core.DryRunExceeded, core.NotLoggedIn, core.StoreFailOpen, core.StoreFailClosed,
		core.SoftExceeded,
	} {
		all.add(reason, 1<<i, 0)
	}
	if want := (counts{Allowed: 1 + 16 + 64 + 256, Refused: 2 + 4 + 8 + 32 + 128, Uncounted: 64 + 128, WouldRefuse: 16}); all != want {
		t.Errorf("the counts are %+v, want %+v", all, want)
	}
}

// The samples of five minutes are kept, and the counts of rules for one of them.
func TestFiguresAreBounded(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	if _, err := limiter.MustCounter("n", core.PerHour(1)).Allow(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	f := newFigures(limiter)
	for range 2 * maxSamples {
		f.take()
	}
	detailed := 0
	for _, s := range f.samples {
		if s.rules != nil {
			detailed++
		}
	}
	if len(f.samples) != maxSamples || detailed != maxDetailed || f.minute().rules == nil {
		t.Errorf("%d samples, %d with counts of rules", len(f.samples), detailed)
	}
	if allowed, refused := f.history(); len(allowed) != maxSamples-1 || len(refused) != maxSamples-1 {
		t.Errorf("the chart has %d and %d values", len(allowed), len(refused))
	}
}

func TestPerSecond(t *testing.T) {
	for _, c := range []struct {
		now, then uint64
		passed    time.Duration
		want      float64
	}{
		{30, 10, 2 * time.Second, 10}, {10, 30, 2 * time.Second, 0}, {30, 10, time.Millisecond, 0}, {5, 5, time.Minute, 0},
	} {
		if got := perSecond(c.now, c.then, c.passed); got != c.want {
			t.Errorf("perSecond(%d, %d, %v) is %v, want %v", c.now, c.then, c.passed, got, c.want)
		}
	}
}

// The lines of the chart stay within it, and end at the right.
func TestChart(t *testing.T) {
	if drawChart(nil, nil) != nil {
		t.Error("there is a chart of nothing")
	}
	c := drawChart([]float64{0, 40, 20}, []float64{0, 0, 5})
	if c.Most != 50 || c.Allowed != "591.9,120.0 596.0,24.0 600.0,72.0" || !strings.HasSuffix(c.Refused, " 600.0,108.0") {
		t.Errorf("the chart is %+v", c)
	}
	if !strings.Contains(c.Words, "Allowed: between 0 and 40, now 20. Refused: between 0 and 5, now 5.") {
		t.Errorf("the text is %q", c.Words)
	}
	for most, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 3: 5, 6: 10, 199: 200, 4e9: 5e9} {
		if got := scale(most); got != want {
			t.Errorf("scale(%v) is %v, want %v", most, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	of := core.Histogram{Bounds: []float64{0.001, 0.01}, Counts: []uint64{98, 1, 1}, Count: 100}
	if got := quantile(of, 0.99); got != "10ms" {
		t.Errorf("99 %% took at most %s", got)
	}
	if got := quantile(of, 0.999); got != "over 10ms" {
		t.Errorf("99.9 %% took at most %s", got)
	}
	if got := quantile(core.Histogram{}, 0.99); got != "" {
		t.Errorf("99 %% of nothing took at most %s", got)
	}
}

// The waits of the last minute are those since then, and all of them while there is no earlier sample.
func TestSince(t *testing.T) {
	now := core.Histogram{Bounds: []float64{0.001, 0.01}, Counts: []uint64{100, 7, 3}, Count: 110}
	then := core.Histogram{Bounds: now.Bounds, Counts: []uint64{1, 7, 3}, Count: 11}
	if got := quantile(since(now, then), 0.99); got != "1ms" {
		t.Errorf("99 %% of the last minute took at most %s", got)
	}
	then.Counts, then.Count = []uint64{100, 7, 0}, 107
	if got := quantile(since(now, then), 0.99); got != "over 10ms" {
		t.Errorf("99 %% of three slow calls took at most %s", got)
	}
	if got := quantile(since(now, core.Histogram{}), 0.99); got != "over 10ms" {
		t.Errorf("99 %% of all took at most %s", got)
	}
	if got := quantile(since(now, now), 0.99); got != "" {
		t.Errorf("99 %% of nothing took at most %s", got)
	}
}

// A request for the page's own path without a slash goes to the one with it, wherever it is.
func TestMissingSlash(t *testing.T) {
	for _, c := range []struct{ sent, stripped, want string }{
		{"/limits", "/limits", "./limits/"},
		{"/limits?x=1", "/limits", "./limits/?x=1"},
		{"/a/limits", "/a/limits", "./limits/"},
		{"/limits", "", "./limits/"},
		{"/a/limits?x=1", "", "./limits/?x=1"},
		{"/l%20i%2fmits", "/l i/mits", "./mits/"},
		{"/a:b", "/a:b", "./a:b/"},
		{"//evil.example", "//evil.example", ""},
		{"/", "/", ""}, {"/limits/", "/limits/", ""}, {"/limits/", "/", ""}, {"/limits/audit", "/audit", ""}, {"/limits/ban", "/ban", ""},
		{"/limits/live", "/live", ""}, {"/limits/style.css", "/style.css", ""}, {"/favicon.ico", "/favicon.ico", ""}, {"/api/x", "/api/x", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, c.sent, nil)
		r.URL.Path = c.stripped
		if got := place(r.URL.Path).missingSlash(r); got != c.want {
			t.Errorf("%s as %q goes to %q, want %q", c.sent, c.stripped, got, c.want)
		}
	}
}
