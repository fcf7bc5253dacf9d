package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

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

// A key that holds something else is left as it is, and the log says so.
func TestThresholdsOfAForeignKey(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var log logtest.Log
	options, heard := warning(core.Options{Redis: client, Logger: log.Logger()})
	limiter := newLimiter(t, options)
	limit := core.PerHour(2)
	foreign := core.NoticeKey(me, "n", limit, 0.5)
	if err := client.RPush(background, foreign, "in the way").Err(); err != nil {
		t.Fatal(err)
	}
	guard := newGuard(t, limiter, core.Rule{Name: "n", Limit: limit, Warn: []float64{0.5, 1}})
	wantServed(t, guard, newView("GET", "/"), 200, 200, 200, 429)
	limiter.Close()
	wantReports(t, heard.all(), "n "+me+" 2/h: 1, 2 used")
	if log.Count("level=ERROR", "a threshold is not reported", foreign) != 1 || client.LLen(background, foreign).Val() != 1 {
		t.Error(log.String())
	}
	if left := client.PTTL(background, core.NoticeKey(me, "n", limit, 1)).Val(); left <= 0 || left > time.Hour {
		t.Errorf("a notice lives for %v", left)
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
