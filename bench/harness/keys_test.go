package harness

import (
	"math"
	"testing"
)

func TestKeys(t *testing.T) {
	keys := NewKeys("abc", 12)
	if got := keys.At(0); got != "user:abc000000000000" || len(got) != KeyLen {
		t.Errorf("the first subject is %q", got)
	}
	if got := keys.At(11); got != "user:abc000000000011" {
		t.Errorf("the last subject is %q", got)
	}
}

func TestPicksAreWithinTheKeysAndAPowerOfTwo(t *testing.T) {
	for name, picks := range map[string][]uint32{"one": One(), "uniform": Uniform(1000), "zipf": Zipf(1000, 1.1)} {
		if n := len(picks); n&(n-1) != 0 {
			t.Errorf("%s: %d picks", name, n)
		}
		for _, pick := range picks {
			if pick >= 1000 {
				t.Fatalf("%s picks %d of 1000", name, pick)
			}
		}
	}
}

func TestUniformPicksAllAlike(t *testing.T) {
	counts := countPicks(Uniform(100), 100)
	for key, share := range counts {
		if math.Abs(share-0.01) > 0.001 {
			t.Errorf("key %d gets %.4f of the calls", key, share)
		}
	}
}

// The k-th key is picked k^1.1 times less often than the first.
func TestZipf(t *testing.T) {
	const s = 1.1
	counts, sum := countPicks(Zipf(1000, s), 1000), 0.0
	for k := 1; k <= 1000; k++ {
		sum += math.Pow(float64(k), -s)
	}
	for _, k := range []int{1, 2, 3, 10, 50} {
		want := math.Pow(float64(k), -s) / sum
		if got := counts[k-1]; math.Abs(got-want)/want > 0.05 {
			t.Errorf("key %d gets %.4f of the calls, want %.4f", k, got, want)
		}
	}
}

func countPicks(picks []uint32, n int) []float64 {
	shares := make([]float64, n)
	for _, pick := range picks {
		shares[pick] += 1 / float64(len(picks))
	}
	return shares
}
