package main

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// Each round measures every contestant of a run once, so that the n-th outcomes of two contestants
// are a pair. Our limiter and the recorded script work on a real server.
func TestEachRoundHasOnePair(t *testing.T) {
	server, err := harness.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	b := &bench{server: server, report: newReport(), settings: settings{
		quick: true, rounds: 2, keys: 50, warm: time.Millisecond, measure: 2 * time.Millisecond, aloneCalls: 100,
	}}
	w := uniform
	if err := b.onRedis([]workload{w}); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.few {
		for _, name := range contestantNames() {
			rounds, want := b.outcomes[cell{uniformKeys, name, n}], 0
			if w.has(name, n) {
				want = b.rounds
			}
			if len(rounds) != want {
				t.Errorf("%d goroutines, %s: %d rounds, want %d", n, name, len(rounds), want)
			}
			for _, o := range rounds {
				if failed := o.Errors > 0 || o.Allowed < o.Decisions; failed && (name == rivals.TokenBucket || name == rivals.SameScript) {
					t.Errorf("%d goroutines, %s: %d of %d allowed, %d errors", n, name, o.Allowed, o.Decisions, o.Errors)
				}
			}
		}
	}
}
