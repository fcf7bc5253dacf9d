package algorithm_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A bucket is possible within the bounds that core documents: all sums are exact in a double,
// including debts of ten times the rate, and the refill takes at most 71 years.
var (
	mostUnits = new(big.Int).Lsh(big.NewInt(1), 52)
	mostTime  = new(big.Int).Lsh(big.NewInt(1), 51)
)

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, big.NewInt(f))
	}
	return p
}

// countable reports whether a bucket is within the bounds, computed in numbers that do not
// overflow. The greatest common divisor of rate and ticks is the largest unit in which nothing is
// rounded.
func countable(rate, window, burst int64) bool {
	tick := int64(1)
	if window >= hour && window%millisecond == 0 {
		tick = millisecond
	}
	divisor := new(big.Int).GCD(nil, nil, big.NewInt(rate), big.NewInt(window/tick))
	units := product(burst+10*rate, window/tick)
	refill, rest := new(big.Int).QuoRem(product(burst, window/tick), big.NewInt(rate), new(big.Int))
	if rest.Sign() > 0 {
		refill.Add(refill, big.NewInt(1))
	}
	return units.Cmp(new(big.Int).Mul(mostUnits, divisor)) <= 0 && refill.Mul(refill, big.NewInt(tick)).Cmp(mostTime) <= 0
}

// logarithmic returns a random number from 1 to most. Each order of magnitude is equally likely.
func logarithmic(rng *rand.Rand, most int64) int64 {
	return min(most, max(1, int64(math.Exp(rng.Float64()*math.Log(float64(most))))))
}

func TestBucketedTakesWhatCanBeCountedExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	taken := 0
	for range 200_000 {
		rate, burst := logarithmic(rng, algorithm.MaxPermits), logarithmic(rng, algorithm.MaxPermits)
		window := max(millisecond, logarithmic(rng, algorithm.MaxWindow))
		if rng.IntN(2) == 0 {
			window = max(millisecond, window-window%second) // as people write them
		}
		limit, err := algorithm.Bucketed(rate, window, burst)
		if want := countable(rate, window, burst); want != (err == nil) || err != nil && !errors.Is(err, algorithm.ErrTooLarge) {
			t.Fatalf("Bucketed(%d, %d, %d): %v, countable: %v", rate, window, burst, err, want)
		}
		if err != nil {
			continue
		}
		taken++
		if product(limit.Permit, rate, limit.Tick).Cmp(product(limit.Refill, window)) != 0 {
			t.Fatalf("Bucketed(%d, %d, %d) refills at another rate: %+v", rate, window, burst, limit)
		}
	}
	if taken < 20_000 {
		t.Errorf("only %d of 200000 were buckets that can be counted", taken)
	}
}

func TestBucketedBounds(t *testing.T) {
	for _, tc := range []struct {
		name                string
		rate, window, burst int64
		possible            bool
	}{
		{"most units", 3, 1 << 20, 1<<32 - 30, true},
		{"one permit more", 3, 1 << 20, 1<<32 - 29, false},
		{"longest refill", 1, 1 << 31, 1 << 20, true},
		{"one permit longer", 1, 1 << 31, 1<<20 + 1, false},
		{"most of everything that goes together", algorithm.MaxPermits, millisecond, algorithm.MaxPermits, true},
		{"most of everything", algorithm.MaxPermits, algorithm.MaxWindow, algorithm.MaxPermits, false},
		{"a million a day", 1_000_000, day, 1_000_000, true},
		{"a prime a day", 999_983, day, 999_983, true},
	} {
		if _, err := algorithm.Bucketed(tc.rate, tc.window, tc.burst); tc.possible != (err == nil) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// largestBurst returns the largest Burst of a possible bucket; 0: none is possible.
func largestBurst(rate, window int64) (burst int64) {
	for step := int64(1) << 39; step > 0; step /= 2 {
		if _, err := algorithm.Bucketed(rate, window, burst+step); err == nil {
			burst += step
		}
	}
	return burst
}
