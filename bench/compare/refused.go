package main

import "github.com/accesslimit/accesslimit/bench/rivals"

const refusedKey = "a key that is used up"

// refused is a key that admits 1000 calls and then none: what a flood costs. Each run has a key of its own, so what was admitted is
// known to the call, and who buys speed by admitting more shows. Not every call is timed: the clock would be most of it.
var refused = workload{
	name: refusedKey, limit: rivals.UsedUp, all: []int{1, 64, 256}, few: []int{256}, exact: true, every: 16,
	keys: func(settings) int { return exactRuns },
}

// exactRuns is how many keys there are to be used up: more than there are runs in a visit.
const exactRuns = 8
