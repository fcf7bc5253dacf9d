package main

import (
	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

const uniformKeys = "100k keys, uniform"

// uniform is many keys that are called equally often, so that two calls on one key hardly ever
// meet.
var uniform = workload{
	name: uniformKeys, limit: rivals.Roomy, all: []int{1, 16, 64, 256, 1024}, few: []int{1, 16, 256},
	keys: func(s settings) int { return s.manyKeys }, picks: harness.Uniform, loaded: true,
}
