package algorithm_test

import (
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// A reply that says something else than what follows from its states is an error.
func TestRepliesThatDisagree(t *testing.T) {
	limit := algorithm.Windowed(algorithm.FixedWindow, 2, second)
	const now, start = "3000000000000000", "\x00\x80\x53\xee\x7b\xa8\x0a"
	for _, test := range []struct {
		charged string
		used    byte
		agrees  bool
	}{{"1", 1, true}, {"1", 2, true}, {"1", 3, false}, {"0", 2, true}, {"0", 1, false}, {"2", 2, false}} {
		op := algorithm.Op{Mode: algorithm.AllOrNone, Calls: 1, Counters: []algorithm.Counter{{Key: []byte("a"), Limit: &limit, Cost: 1}}}
		reply := []any{now, test.charged, start + string([]byte{test.used, 0, 0, 0, 0, 0})}
		if _, verdicts, err := readOp(&op, reply, 0, 1); (err == nil) != test.agrees {
			t.Errorf("%+v: %+v, %v", test, verdicts, err)
		}
	}
}
