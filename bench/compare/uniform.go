package main

import (
	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

const uniformKeys = "100k keys, uniform"

// uniform is many keys, each called as often as the others: hardly ever do two calls on one key meet.
var uniform = workload{
	name: uniformKeys, limit: rivals.Roomy, all: []int{1, 16, 64, 256, 1024}, few: []int{1, 64, 256},
	keys: func(s settings) int { return s.manyKeys }, picks: harness.Uniform, ceiling: true,
}
