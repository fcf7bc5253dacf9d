package main

import (
	"fmt"
	"time"
)

// settings say how much is measured.
type settings struct {
	quick        bool
	only         string // measure only the parts whose names contain this
	rounds       int    // of everything on Redis
	warm         time.Duration
	measure      time.Duration // of each run on Redis
	inProcess    time.Duration // of each run in this process
	localRounds  int           // of everything in this process
	manyKeys     int
	heapKeys     int
	costCalls    int // calls of a script in each round
	costRounds   int
	costKeys     int
	ceilingCalls int // that redis-benchmark makes
	processes    []int
	processPicks []string // the workloads that several processes run
}

var full = settings{
	rounds: 3, warm: 150 * time.Millisecond, measure: 500 * time.Millisecond,
	inProcess: 250 * time.Millisecond, localRounds: 5, manyKeys: 100_000, heapKeys: 1_000_000,
	costCalls: 40_000, costRounds: 5, costKeys: 10_000, ceilingCalls: 300_000,
	processes: []int{1, 2, 4}, processPicks: []string{hotKey, uniformKeys},
}

// short ends within a minute and a half. Its figures vary more.
var short = settings{
	quick: true, rounds: 2, warm: 60 * time.Millisecond, measure: 200 * time.Millisecond,
	inProcess: 80 * time.Millisecond, localRounds: 3, manyKeys: 100_000, heapKeys: 100_000,
	costCalls: 20_000, costRounds: 3, costKeys: 3000, ceilingCalls: 100_000,
	processes: []int{1, 4}, processPicks: []string{hotKey},
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
