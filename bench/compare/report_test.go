package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// madeUp returns a run in which our TokenBucket does 2000 decisions a second, and every rival 1000.
// In the second round, the machine has half the speed.
func madeUp() *bench {
	b := &bench{settings: short, report: newReport()}
	for _, w := range slices.Concat(together...) {
		for _, name := range contestantNames() {
			for _, n := range w.counts(b.settings) {
				if !w.has(name, n) {
					continue
				}
				took := time.Second
				if name == rivals.TokenBucket {
					took /= 2
				}
				c := cell{w.name, name, n}
				for range 2 {
					o := &harness.Outcome{Decisions: 1000, Allowed: 1000, Took: took, Mallocs: 5000, Latency: harness.NewLatency()}
					if err := o.Latency.RecordValue(time.Millisecond.Nanoseconds()); err != nil {
						panic(err)
					}
					b.add(c, o)
					took *= 2
				}
			}
		}
	}
	return b
}

// Figures that were not measured are marked in every row of the targets and have no table: a 0 would
// be taken for a figure.
func TestFiguresThatWereNotMeasured(t *testing.T) {
	b := &bench{settings: full, report: newReport()}
	b.only = "nothing of it"
	for _, target := range b.targets() {
		if target.result() != notMeasured || !strings.Contains(target.String(), ": - (") {
			t.Errorf("%s: %s", target.result(), target)
		}
	}
	r := b.results("7.0")
	if len(r.figures) > 0 {
		t.Errorf("%v", r.figures)
	}
	text := r.text()
	if n := strings.Count(text, "\n## "); n != 1 {
		t.Errorf("%d sections, want that of the targets:\n%s", n, text)
	}
	if !strings.Contains(text, "Written by `go run ./compare -only \"nothing of it\"`") || strings.Contains(text, "make bench") {
		t.Errorf("the text does not say what wrote it:\n%s", text)
	}
	if err := r.drawCharts(t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestCommand(t *testing.T) {
	for want, s := range map[string]settings{
		"make bench": full, "make bench-quick": short,
		`go run ./compare -only "hot"`: {only: "hot"}, `go run ./compare -quick -only "hot"`: {quick: true, only: "hot"},
	} {
		if got := s.command(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestChosen(t *testing.T) {
	b := &bench{settings: short, report: newReport()}
	if all, err := b.chosen(); err != nil || len(all) != len(b.parts()) {
		t.Errorf("%d parts without -only: %v", len(all), err)
	}
	b.only = "hot"
	if some, err := b.chosen(); err != nil || len(some) != 1 || some[0].name != hotKey {
		t.Errorf("-only hot: %v, %v", some, err)
	}
	b.only = "nosuchpart"
	_, err := b.chosen()
	if err == nil || !strings.HasPrefix(err.Error(), `no part has "nosuchpart" in its name: one hot key, `) {
		t.Errorf("-only nosuchpart: %v", err)
	}
}

// Workloads that are measured in one visit share their keys.
func TestWorkloadsTogetherHaveTheSameKeys(t *testing.T) {
	for _, same := range together {
		for _, w := range same {
			if w.limit != same[0].limit || w.keys != same[0].keys || w.exact != same[0].exact || w.loaded != same[0].loaded {
				t.Errorf("%s and %s have other keys", w.name, same[0].name)
			}
			if w.exact && full.rounds*len(w.counts(full)) > w.keys {
				t.Errorf("%s has a key too few", w.name)
			}
		}
	}
}

func TestForEachKeyCallsEachOnce(t *testing.T) {
	for _, n := range []int{1, atOnce - 1, 3*atOnce + 1} {
		var calls sync.Map
		keys := harness.NewKeys("key", n)
		err := forEachKey(keys, func(subject string) error {
			if _, again := calls.LoadOrStore(subject, true); again {
				return fmt.Errorf("%s was called twice", subject)
			}
			return nil
		})
		for i := range n {
			if _, called := calls.Load(keys.At(i)); !called || err != nil {
				t.Fatalf("%d keys: called %s: %v, %v", n, keys.At(i), called, err)
			}
		}
	}
}

// A failed call is no decision, so a rival that only fails is not fast.
func TestFailedCallsAreNotCounted(t *testing.T) {
	o := &harness.Outcome{Decisions: 1000, Errors: 900, Took: time.Second}
	if got := perSecond(o); got != 100 {
		t.Errorf("%v decisions a second, want 100", got)
	}
}

// Shares are those of the calls of all rounds: a median would hide a round that failed.
func TestShare(t *testing.T) {
	b, c := &bench{report: newReport()}, cell{workload: "any"}
	b.add(c, &harness.Outcome{Decisions: 60, Allowed: 60})
	b.add(c, &harness.Outcome{Decisions: 40, Allowed: 20, Errors: 10})
	if got := b.share(c, failed).Median; got != 10 {
		t.Errorf("%v %% failed", got)
	}
	if got := b.share(c, refusedCalls).Median; got != 10 {
		t.Errorf("%v %% refused", got)
	}
}

// The calls that a used-up key admitted are those of the worst round: a median could hide
// over-admission.
func TestMostAdmitted(t *testing.T) {
	if got := mostAdmitted([]*harness.Outcome{{Ever: 1000}, {Ever: 1007}, {Ever: 1000}}); got != 1007 {
		t.Errorf("%v admitted", got)
	}
}
