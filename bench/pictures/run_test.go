package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// Every algorithm of the list works: of many calls at once it admits as many as the limit
// allows, and not all.
func TestEveryAlgorithmRuns(t *testing.T) {
	crowd := client{name: "crowd", arrivals: make([]arrival, 10*maxCalls)}
	for i := range crowd.arrivals {
		crowd.arrivals[i].takes = window
	}
	list := algorithms(limitertest.New(t, core.Options{}))
	results, err := run(t.Context(), time.Now(), list, []client{crowd})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range list {
		g := graphOf(results[i][0])
		if sum(g.offered) != 10*maxCalls || sum(g.admitted) < maxCalls || sum(g.admitted) >= 10*maxCalls {
			t.Errorf("%s: %d of %d calls admitted", a.title, sum(g.admitted), sum(g.offered))
		}
	}
}

func TestPicturesHaveTheirOwnFiles(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range algorithms(limitertest.New(t, core.Options{})) {
		if seen[a.file] {
			t.Errorf("two pictures are called %s", a.file)
		}
		seen[a.file] = true
	}
}

func TestErrorNamesTheCaller(t *testing.T) {
	broken := errors.New("broken")
	decide := func(context.Context, string, time.Duration) (bool, time.Duration, error) { return false, 0, broken }
	caller := client{name: "caller", arrivals: make([]arrival, 1)}
	_, err := run(t.Context(), time.Now(), []algorithm{{title: "Some", decide: decide}}, []client{caller})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "Some, caller") {
		t.Errorf("run: %v, want an error that names the algorithm and the client", err)
	}
}

func TestNextBoundaryIsAheadAndAligned(t *testing.T) {
	for _, now := range []time.Time{time.Unix(100, 0), time.Unix(100, 1), time.Unix(101, 999_999_999)} {
		next := nextBoundary(now)
		if wait := next.Sub(now); wait <= 0 || wait > window || next.UnixNano()%int64(window) != 0 {
			t.Errorf("nextBoundary(%v) = %v", now, next)
		}
	}
}
