package main

import "github.com/accesslimit/accesslimit/bench/rivals"

const refusedKey = "a key that is used up"

// refused is a key that admits 1000 calls and then none: the cost of a flood. Each run uses up
// its own key, so admitted calls can be counted exactly, and a limiter that is fast because it
// admits too many is found out. Not every call is timed: reading the clock would be most of the
// time.
var refused = workload{
	name: refusedKey, limit: rivals.UsedUp, all: []int{1, 64, 256}, few: []int{256}, exact: true, every: 16,
	keys: func(s settings) int { return s.rounds * 3 },
}
