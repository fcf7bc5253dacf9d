package main

import (
	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

const zipfKeys = "100k keys, zipf s = 1.1"

// zipf is many keys of which a few get most calls, like users, tenants and crawlers of real
// services.
var zipf = workload{
	name: zipfKeys, limit: rivals.Roomy, all: []int{64, 256, 1024}, few: []int{256},
	keys:  func(s settings) int { return s.manyKeys },
	picks: func(n int) []uint32 { return harness.Zipf(n, 1.1) }, loaded: true,
}
