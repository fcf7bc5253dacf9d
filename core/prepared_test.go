package core_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// wantOwn checks that a direct call charges its own counter, which the calls that are not prepared find, too.
func wantOwn(t *testing.T, limiter *core.Limiter, name, subject string, limit core.Limit) {
	t.Helper()
	for left := limit.Max - 1; left >= limit.Max-2; left-- {
		d, err := limiter.MustCounter(name, limit).Allow(background, subject)
		if err != nil || d.Remaining != left || d.Rule != name || d.Key != subject || d.Limit != limit {
			t.Fatalf("%.50q of %.50q, %v: %+v, %v; want %d left", name, subject, limit, d, err, left)
		}
	}
	if err := limiter.MustCounter(name, limit).Reset(background, subject); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, limiter, name, subject, limit, limit.Max)
}

// One name may be asked for with any limits, by turns, and more of them than are kept.
func TestPreparedWithOtherLimits(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for range 2 {
			for i := range 2 * core.MaxPreparedLimits {
				wantOwn(t, limiter, "reply", "user:alice", core.Limit{Max: 5 + i, Window: time.Duration(i+1) * time.Minute})
				wantOwn(t, limiter, "reply", "user:alice", core.Limit{Max: 5 + i, Window: time.Hour}.Bucket(5+i))
			}
		}
		if kept := core.PreparedCalls(limiter); kept != core.MaxPreparedLimits {
			t.Errorf("%d limits are kept, want %d", kept, core.MaxPreparedLimits)
		}
	})
}

func TestPreparedWithAnySubject(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for _, name := range nasty() {
		for _, subject := range nasty() {
			if subject == "::" { // an address, which Reset refuses
				subject = ":::"
			}
			wantOwn(t, limiter, name, subject, core.PerHour(3))
		}
	}
}

// What is wrong is an error each time, and nothing is prepared of it.
func TestPreparedWithWrongLimits(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for range 2 {
		for _, limit := range []core.Limit{{}, core.PerHour(0), core.PerHour(-7), core.PerCalendarDay(1, "Nowhere"), {Max: 1, Window: time.Hour, Burst: 1}} {
			d, err := limiter.MustCounter("reply", limit).Allow(background, "user:alice")
			wrong, ok := err.(*core.RuleError)
			if !ok || wrong.Rule != "reply" || d.Allowed {
				t.Errorf("%v: %+v, %v", limit, d, err)
			}
		}
	}
	if kept := core.PreparedCalls(limiter); kept != 0 {
		t.Errorf("%d are kept", kept)
	}
}

// The name of a call may lie in memory that is written over when the call is over, as fiber's strings do.
func TestPreparedKeepsNoNameOfACaller(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	name := []byte("reply")
	if _, err := limiter.MustCounter(borrowed(name), core.PerHour(3)).Allow(background, "user:alice"); err != nil {
		t.Fatal(err)
	}
	copy(name, "other")
	wantLeft(t, limiter, "other", "user:alice", core.PerHour(3), 3)
	wantLeft(t, limiter, "reply", "user:alice", core.PerHour(3), 2)
	for _, d := range limiter.Stats().Decisions {
		if d.Rule != "reply" {
			t.Errorf("counted as %q", d.Rule)
		}
	}
}

// Goroutines that ask for the same names and limits at once, more of both than are kept, find the same counters.
func TestPreparedAtOnce(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	const goroutines, names = 8, 1200
	var calls sync.WaitGroup
	for range goroutines {
		calls.Go(func() {
			for i := range names {
				for hours := range 10 {
					limit := core.Limit{Max: 100, Window: time.Duration(hours+1) * time.Hour}
					if _, err := limiter.MustCounter(fmt.Sprint("name", i%300*4+i/300), limit).Allow(background, "user:alice"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	calls.Wait()
	for i := range names {
		for hours := range 10 {
			limit := core.Limit{Max: 100, Window: time.Duration(hours+1) * time.Hour}
			wantLeft(t, limiter, fmt.Sprint("name", i), "user:alice", limit, 100-goroutines)
		}
	}
	if kept := core.PreparedCalls(limiter); kept > 1000*core.MaxPreparedLimits {
		t.Errorf("%d are kept", kept)
	}
}

// Errors leave nothing behind in what the next call works with.
func TestPreparedAfterErrors(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for _, bad := range []func() (core.Decision, error){
		func() (core.Decision, error) {
			return limiter.MustCounter("", core.PerHour(3)).Allow(background, "user:alice")
		},
		func() (core.Decision, error) {
			return limiter.MustCounter("reply", core.PerHour(3)).Allow(background, "")
		},
		func() (core.Decision, error) {
			return limiter.MustCounter("reply", core.PerHour(3)).AllowN(background, "user:alice", -1)
		},
		func() (core.Decision, error) {
			return limiter.MustCounter("reply", core.PerHour(3)).AllowN(background, "user:alice", 4)
		},
		func() (core.Decision, error) { return limiter.MustCounter("", core.Limit{}).Allow(background, "") },
		func() (core.Decision, error) {
			return limiter.MustPacer("reply", core.PerHour(3)).Reserve(background, strings.Repeat("x", 99), 1)
		},
	} {
		if d, err := bad(); err == nil || d.Allowed || d.Rule != "" {
			t.Errorf("%+v, %v", d, err)
		}
		wantOwn(t, limiter, "reply", "user:alice", core.PerHour(3))
	}
}
