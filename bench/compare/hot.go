package main

import (
	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

const hotKey = "one hot key"

// hot is one key that all goroutines call, so that they meet on the same counter. Not every call is
// timed: reading the clock for that would be a sixth of the time of a leased call.
var hot = workload{
	name: hotKey, limit: rivals.RoomyHot, all: []int{1, 16, 64, 256, 1024}, few: []int{1, 16, 256}, every: 8,
	keys:  func(settings) int { return 1 },
	picks: func(int) []uint32 { return harness.One() },
}
