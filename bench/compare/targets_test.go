package main

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// A target is met or missed only if the whole spread meets or misses it.
func TestResultOfATarget(t *testing.T) {
	steady, wide := harness.Spread{Median: 10, Low: 10, High: 10}, harness.Spread{Median: 9, Low: 7, High: 12}
	for _, test := range []struct {
		target target
		want   string
	}{
		{target{want: 10, reached: steady}, met},
		{target{want: 10.01, reached: steady}, missed},
		{target{want: 10, reached: steady, atMost: true}, met},
		{target{want: 9.99, reached: steady, atMost: true}, missed},
		{target{want: 10, reached: wide}, undecided},
		{target{want: 10, reached: wide, atMost: true}, undecided},
		{target{want: 12, reached: wide}, missed},
		{target{want: 7, reached: wide}, met},
		{target{want: 10, reached: harness.SpreadOf(nil), atMost: true}, notMeasured},
	} {
		if got := test.target.result(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.target, got, test.want)
		}
	}
}

func TestTargetsAreOfTheRun(t *testing.T) {
	found := make(map[string]target)
	for _, target := range madeUp().targets() {
		found[target.row] = target
	}
	for row, want := range map[string]float64{
		"one hot key, to ulule":                              2,
		"100k keys uniform, to one script per decision":      2,
		"100k keys, uniform, SlidingWindow to TokenBucket":   0.5,
		"100k keys uniform, to one key per script":           2,
		"100k keys uniform, allocations to a bare EvalSha":   1,
		"one goroutine, p50 to a bare EvalSha of our script": 1,
	} {
		if got := found[row].reached; got != (harness.Spread{Median: want, Low: want, High: want}) {
			t.Errorf("%s: %v, want %v in both rounds", row, got, want)
		}
	}
	if floor := found["in process, 100k keys, CPU time to "+rivals.Floor]; floor.result() != notMeasured {
		t.Errorf("a floor that was not measured: %v", floor)
	}
}

// The time that a middleware adds is also taken within a round: the handler of the second round is
// slower.
func TestAddedPairs(t *testing.T) {
	b := &bench{report: newReport()}
	for name, nanos := range map[string][]float64{rivals.None: {10, 50}, rivals.Ours: {110, 150}, rivals.Ulule: {210, 250}} {
		for _, n := range nanos {
			b.add(middlewareCell("gin", name), &harness.Outcome{Decisions: 1, Took: time.Duration(n)})
		}
	}
	if got := b.addedPairs("gin", rivals.Ours, rivals.Ulule); got != (harness.Spread{Median: 0.5, Low: 0.5, High: 0.5}) {
		t.Errorf("%v", got)
	}
}
