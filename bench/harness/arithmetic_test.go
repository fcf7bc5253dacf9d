package harness

import (
	"math"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{7}, Spread{7, 7, 7}},
		{[]float64{9, 1, 5}, Spread{5, 1, 9}},
		{[]float64{4, 1, 3, 100}, Spread{3.5, 1, 100}},
		{[]float64{4, math.NaN(), 8}, Spread{6, 4, 8}},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Spread{8, 4, 12}},
	} {
		if got := SpreadOf(test.values); got != test.want {
			t.Errorf("SpreadOf(%v) = %v, want %v", test.values, got, test.want)
		}
	}
}

// The spread of no values is not a number, because readers would take a zero for a result.
func TestSpreadOfNothing(t *testing.T) {
	if got := SpreadOf(nil); !math.IsNaN(got.Median) || !math.IsNaN(got.Low) || !math.IsNaN(got.High) {
		t.Errorf("SpreadOf(nil) = %v", got)
	}
}

// SpreadOf sorts a copy, so the rounds keep their order.
func TestSpreadKeepsTheOrderOfRounds(t *testing.T) {
	rounds := []float64{3, 1, 2}
	SpreadOf(rounds)
	if rounds[0] != 3 || rounds[1] != 1 {
		t.Errorf("the rounds are %v now", rounds)
	}
}

func TestRatio(t *testing.T) {
	if got := Ratio(3, 2); got != 1.5 {
		t.Errorf("Ratio(3, 2) = %v", got)
	}
	if got := Ratio(3, 0); !math.IsNaN(got) {
		t.Errorf("Ratio(3, 0) = %v, want none", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.954: "0.95", 12.34: "12.3", 123.4: "123", 9999: "9999", 12_345: "12k", 1_234_567: "1.23M", math.NaN(): "-",
		math.Inf(1): "-", -0.5: "-0.50",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestSpreadIn(t *testing.T) {
	for want, s := range map[string]Spread{"1.50x (1.00..20.0)": {1.5, 1, 20}, "1.50x": {1.5, 1.5, 1.5}, "-": SpreadOf(nil)} {
		if got := s.In("x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// If the machine is half as fast in one round, the ratios stay the same. A round in which either of
// the two did nothing is left out.
func TestPairs(t *testing.T) {
	if got := Pairs([]float64{20, 10, 7}, []float64{10, 5, 0}); got != (Spread{2, 2, 2}) {
		t.Errorf("the ratio is %v", got)
	}
}
