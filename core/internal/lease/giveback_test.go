package lease

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Charges are given back in the smallest possible number of parts, each with at most maxTogether
// charges and each key once.
func TestDistinctKeys(t *testing.T) {
	var charges []algorithm.Charge
	for i := range 2*maxTogether + 1 {
		charges = append(charges, algorithm.Charge{Key: fmt.Append(nil, "key", i/2)})
	}
	parts := distinctKeys(charges)
	if len(parts) != 3 {
		t.Errorf("%d parts", len(parts))
	}
	for _, part := range parts {
		keys := map[string]bool{}
		for _, c := range part {
			keys[string(c.Key)] = true
		}
		if len(part) > maxTogether || len(keys) != len(part) {
			t.Errorf("a part of %d charges has %d keys", len(part), len(keys))
		}
	}
}
