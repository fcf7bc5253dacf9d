package main

import (
	"fmt"
	"time"
)

// settings say how much is measured. There are many short rounds, because two figures of one short
// round were measured while the machine was equally busy.
type settings struct {
	quick          bool
	only           string // measure only the parts whose names contain this
	rounds         int    // of everything on Redis
	warm           time.Duration
	measure        time.Duration // of each run on Redis
	aloneCalls     int           // of the script without a limiter, in each run
	processRounds  int           // of several processes
	processMeasure time.Duration
	processes      []int
	processPicks   []string      // the workloads that several processes run
	inProcess      time.Duration // of each run in this process
	localRounds    int           // of everything in this process
	manyKeys       int
	heapKeys       int
	costTimes      int // how often each recorded script is repeated in a round
	costRounds     int
	costKeys       int
}

var full = settings{
	rounds: 24, warm: 20 * time.Millisecond, measure: 60 * time.Millisecond, aloneCalls: 8000,
	processRounds: 7, processMeasure: 250 * time.Millisecond,
	processes: []int{1, 2, 4}, processPicks: []string{hotKey, uniformKeys},
	inProcess: 60 * time.Millisecond, localRounds: 20, manyKeys: 100_000, heapKeys: 1_000_000,
	costTimes: 3, costRounds: 25, costKeys: 3000,
}

// short ends within a minute and a half. Its spreads are wider, so fewer targets are decided.
var short = settings{
	quick: true, rounds: 6, warm: 15 * time.Millisecond, measure: 40 * time.Millisecond, aloneCalls: 5000,
	processRounds: 3, processMeasure: 150 * time.Millisecond,
	processes: []int{1, 4}, processPicks: []string{hotKey},
	inProcess: 30 * time.Millisecond, localRounds: 6, manyKeys: 100_000, heapKeys: 100_000,
	costTimes: 2, costRounds: 6, costKeys: 3000,
}

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
