package main

import (
	"fmt"
	"time"
)

// settings say how much is measured. Many short rounds are better than a few long ones: within a
// short round, the machine is equally busy for all that are compared.
type settings struct {
	quick       bool
	only        string // measure only the parts whose names contain this
	rounds      int    // of everything on Redis
	keys        int    // the most keys of a workload
	warm        time.Duration
	measure     time.Duration // of each run on Redis
	aloneCalls  int           // of the script without a limiter, in each run
	inProcess   time.Duration // of each run in this process
	localRounds int           // of everything in this process
	heapKeys    int
	costTimes   int // how often each recorded script is repeated in a round
	costRounds  int
	busyWindow  time.Duration // of the counters whose memory is measured
	busyCalls   int           // of each of their subjects
	busyFor     time.Duration // over which these calls are spread
}

var full = settings{
	rounds: 24, keys: manyKeys, warm: 20 * time.Millisecond, measure: 60 * time.Millisecond, aloneCalls: 8000,
	inProcess: 60 * time.Millisecond, localRounds: 20, heapKeys: 1_000_000, costTimes: 3, costRounds: 25,
	busyWindow: 3 * time.Second, busyCalls: manyCalls, busyFor: 2400 * time.Millisecond,
}

// short runs for at most two minutes. Its spreads are wider, so fewer targets can be decided.
var short = settings{
	quick: true, rounds: 6, keys: manyKeys, warm: 15 * time.Millisecond, measure: 40 * time.Millisecond, aloneCalls: 5000,
	inProcess: 30 * time.Millisecond, localRounds: 6, heapKeys: 100_000, costTimes: 2, costRounds: 6,
	busyWindow: full.busyWindow, busyCalls: manyCalls, busyFor: full.busyFor,
}

// manyKeys is the number of keys that most workloads call.
const manyKeys = 100_000

// command returns the command line that measures by these settings.
func (s settings) command() string {
	switch {
	case s.only != "" && s.quick:
		return fmt.Sprintf("go run ./compare -quick -only %q", s.only)
	case s.only != "":
		return fmt.Sprintf("go run ./compare -only %q", s.only)
	case s.quick:
		return "make bench-quick"
	default:
		return "make bench"
	}
}
