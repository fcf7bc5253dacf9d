package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
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
