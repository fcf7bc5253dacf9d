package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	runTime  = 30 * time.Second
	barWidth = 100 * time.Millisecond
	seed     = 2 // the same calls for every algorithm, so that the pictures can be compared
)

// arrival is one call of the load: when it comes, and how long it takes if it is admitted. The
// duration matters only to an algorithm that counts calls in flight.
type arrival struct{ at, takes time.Duration }

// client is a caller with its load. Its axis is the same in all pictures.
type client struct {
	name     string
	about    string
	axis     axis // of calls per barWidth
	arrivals []arrival
}

func clients() []client {
	return []client{
		{"Bursty client", "bursts of about 500 calls every 3 s, a few between", axis{20, 40, 60}, bursty()},
		{"Steady client", "150 calls a second, without a pause", axis{10, 20}, steady()},
	}
}

// bursty also makes a few calls between its bursts. Otherwise each burst would start its own fixed
// window, and no burst would cross a boundary, where two windows' worth of calls can pass.
func bursty() []arrival {
	rng := rand.New(rand.NewPCG(seed, 1))
	calls := every(rng, 100*time.Millisecond, 0, runTime)
	for at := time.Second; at < runTime; at += between(rng, 2300*time.Millisecond, 3700*time.Millisecond) {
		length := between(rng, 700*time.Millisecond, 1300*time.Millisecond)
		calls = append(calls, every(rng, 2*time.Millisecond, at, min(at+length, runTime))...)
	}
	slices.SortFunc(calls, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return calls
}

func steady() []arrival {
	return every(rand.New(rand.NewPCG(seed, 2)), time.Second/150, 0, runTime)
}

// every returns one call in each gap, at a random moment within it.
func every(rng *rand.Rand, gap, from, until time.Duration) []arrival {
	var calls []arrival
	for at := from; at+gap <= until; at += gap {
		calls = append(calls, arrival{at: at + between(rng, 0, gap), takes: between(rng, time.Second, 3*time.Second)})
	}
	return calls
}

func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)))
}
