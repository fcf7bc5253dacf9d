package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// reports notes what OnThreshold receives.
type reports struct {
	mu    sync.Mutex
	heard []core.Threshold
}

func (r *reports) note(_ context.Context, t core.Threshold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, t)
}

// all returns the reports so far, in order.
func (r *reports) all() []core.Threshold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard)
}

// await returns the reports when there are n.
func (r *reports) await(t testing.TB, n int) []core.Threshold {
	t.Helper()
	if !redistest.WaitUntil(func() bool { return len(r.all()) >= n }, patient) || len(r.all()) != n {
		t.Fatalf("%d reports, want %d: %+v", len(r.all()), n, r.all())
	}
	return r.all()
}

// warning returns options with a Timeout for Close, and what is reported.
func warning(options core.Options) (core.Options, *reports) {
	heard := new(reports)
	options.OnThreshold, options.Timeout = heard.note, patient
	return options, heard
}

// texts returns what the reports say, except their times.
func textsOf(heard []core.Threshold) (texts []string) {
	for _, t := range heard {
		texts = append(texts, fmt.Sprintf("%s %s %v: %v, %d used", t.Rule, t.Key, t.Limit, t.Fraction, t.Used))
	}
	return texts
}

func wantReports(t testing.TB, heard []core.Threshold, want ...string) {
	t.Helper()
	if got := textsOf(heard); !slices.Equal(got, want) {
		t.Errorf("reported is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// If OnThreshold hangs, calls go on, further reports are dropped, and Close waits no longer than
// Timeout. Then the context of the report ends.
func TestOnThresholdHangs(t *testing.T) {
	var log logtest.Log
	ended := make(chan struct{})
	limiter := newLimiter(t, core.Options{
		Logger: log.Logger(), Timeout: 20 * time.Millisecond,
		OnThreshold: func(ctx context.Context, _ core.Threshold) {
			<-ctx.Done()
			close(ended) // which panics if there is another report
		},
	})
	check := limiter.MustCheck(core.Rule{Name: "n", Limit: core.PerHour(1), Warn: []float64{1}})
	for i := range 5_000 {
		if status(check.Allow(newView("GET", "/"), fmt.Sprint("s", i))) != 200 {
			t.Fatal("a call is refused")
		}
	}
	limiter.Close()
	<-ended
	if log.Count("level=WARN", "not reported", "too many", "OnThreshold return quickly") == 0 || log.Count("panicked") > 0 {
		t.Error(log.String())
	}
}

// A missing right turns the reports off, with one line in the log. Decisions stay as they are.
func TestThresholdsWithoutARight(t *testing.T) {
	client := redistest.Start(t).UserWith(t, "~accesslimit:{*}:n:*", "+@all") // the counters of n, and no notices
	var log logtest.Log
	options, heard := warning(core.Options{Logger: log.Logger(), Redis: client})
	limiter := newLimiter(t, options)
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(2), Warn: []float64{0.5, 1}})
	wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 429)
	limiter.Close()
	wantReports(t, heard.all())
	if log.Count("thresholds are not reported", "lacks a right", "all keys that begin with Options.Prefix", failure.RightsPage) != 1 || log.Count("threshold") != 1 {
		t.Error(log.String())
	}
}

// A panic in OnThreshold is logged.
func TestOnThresholdPanics(t *testing.T) {
	var log logtest.Log
	options := core.Options{Logger: log.Logger(), OnThreshold: func(context.Context, core.Threshold) { panic("out of order") }}
	limiter := newLimiter(t, options)
	limiter.MustCheck(core.Rule{Name: "n", Limit: core.PerHour(1), Warn: []float64{1}}).Allow(newView("GET", "/"), "s")
	limiter.Close()
	if log.Count("level=ERROR", "OnThreshold panicked", "out of order", "rule=n", "threshold_fault_test.go") != 1 {
		t.Error(log.String())
	}
}

// A key that holds something else is left as it is, and the log says so.
func TestThresholdsOfAForeignKey(t *testing.T) {
	const foreign = "accesslimit:{ip:192.0.2.1}:n%n2-0.5:fw1:3600000000"
	client := redistest.Start(t).Client(t)
	var log logtest.Log
	options, heard := warning(core.Options{Redis: client, Logger: log.Logger()})
	limiter := newLimiter(t, options)
	client.RPush(background, foreign, "in the way")
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(2).Fixed(), Warn: []float64{0.5, 1}})
	wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 429)
	limiter.Close()
	wantReports(t, heard.all(), "n "+me+" 2/h fixed: 1, 2 used")
	if log.Count("level=ERROR", "a threshold is not reported", foreign) != 1 || client.LLen(background, foreign).Val() != 1 {
		t.Error(log.String())
	}
}
