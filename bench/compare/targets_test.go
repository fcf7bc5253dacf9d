package main

import (
	"testing"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// A target is met or missed only if the whole spread meets or misses it.
func TestResultOfATarget(t *testing.T) {
	steady, wide := once(10), harness.Spread{Median: 9, Low: 7, High: 12}
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
		"one hot key, 256 goroutines, to ulule":                              2,
		"100k keys uniform, 256 goroutines, to one script per decision":      2,
		"100k keys, uniform, 256 goroutines, SlidingWindow to TokenBucket":   0.5,
		"100k keys uniform, 256 goroutines, to ours with one key per script": 2,
		"allocations on Redis, uniform, 256 goroutines":                      5,
		"one goroutine, p50 to a bare EvalSha of our script":                 1,
	} {
		if got := found[row].reached; got != once(want) {
			t.Errorf("%s: %v, want %v in both rounds", row, got, want)
		}
	}
	if floor := found["in process, one key, CPU time to "+rivals.Floor]; floor.result() != notMeasured {
		t.Errorf("a floor that was not measured: %v", floor.cells())
	}
}

// The fastest peer is the one to which our ratio is worst. The floor and our other algorithms are
// no peers.
func TestToFastestPeer(t *testing.T) {
	b := &bench{report: newReport()}
	for rival, nanos := range map[string]float64{
		rivals.TokenBucket: 100, rivals.SlidingWindow: 10, rivals.Floor: 10, rivals.Ulule: 200, rivals.GoLimiter: 80,
	} {
		b.local[b.oneKey(rival)] = []local{{nanos: nanos}, {nanos: 2 * nanos}}
	}
	if name, ratio := b.toFastestPeer(b.oneKey); name != ", "+rivals.GoLimiter || ratio != once(1.25) {
		t.Errorf("the fastest peer%s, %v", name, ratio)
	}
}

// The time that a middleware adds is also taken within a round: the handler of the second round is
// slower.
func TestAddedPairs(t *testing.T) {
	b := &bench{report: newReport()}
	for name, nanos := range map[string][]float64{rivals.None: {10, 50}, rivals.Ours: {110, 150}, rivals.Ulule: {210, 250}} {
		for _, n := range nanos {
			c := middlewareCell("gin", name)
			b.local[c] = append(b.local[c], local{nanos: n})
		}
	}
	if got := b.addedPairs("gin", rivals.Ours, rivals.Ulule); got != once(0.5) {
		t.Errorf("%v", got)
	}
}
