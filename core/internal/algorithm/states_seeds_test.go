package algorithm_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// stateAfter returns the bytes of a counter after calls with these costs, and with this time
// between them, in the form that put takes.
func (s *server) stateAfter(f *testing.F, l *algorithm.Limit, used []int64) []byte {
	f.Helper()
	ctx, now := context.Background(), int64(early)
	s.FlushDB(ctx)
	for i, n := range used {
		if i%2 == 1 {
			now += n
			continue
		}
		a := ask{now, true, []algorithm.Counter{{Key: []byte("counter"), Limit: l, Cost: n, Mark: fmt.Sprint("mark", i)}}}
		keys, argv := a.args()
		if l.Kind == algorithm.Pausing {
			p := algorithm.Pause{Span: second, Refused: true, Longest: hour, By: algorithm.PauseBy("bob", "ticket 7")}
			c := algorithm.Change{Kind: algorithm.Pauses, Key: []byte("counter"), Pause: &p}
			s.EvalSha(ctx, s.sha(timed, c.Script()), keys, append(c.Append(nil, now), now)...)
			continue
		}
		s.EvalSha(ctx, s.sha(timed, a.op().Script()), keys, argv...)
	}
	var state []byte
	switch l.Kind {
	case algorithm.SlidingLog, algorithm.Concurrency:
		state = appendMembers(nil, s.ZRangeWithScores(ctx, "counter", 0, -1).Val())
	default:
		state = []byte(s.Get(ctx, "counter").Val())
	}
	if len(state) == 0 {
		f.Fatalf("%s: nothing is kept of %v", l.Kind.Tag(), used)
	}
	return state
}

// addShifted adds logs after the clock stepped back, and the same logs with one more byte somewhere.
func (s *server) addShifted(f *testing.F, kind byte, l *algorithm.Limit) {
	f.Helper()
	ctx := context.Background()
	s.FlushDB(ctx)
	for i := range int64(4) {
		s.decide(timed, one("counter", l, early+i-i/3*second/2, 1+i%2))
	}
	state := appendMembers(nil, s.ZRangeWithScores(ctx, "counter", 0, -1).Val())
	if len(state) < 9 || state[8] > 0 {
		f.Fatalf("no shift in %q", state)
	}
	for at := range state {
		for _, more := range []byte{0, 1, 200} {
			state[at] += more
			for _, later := range []int64{0, second / 2, second - 1, -second} {
				f.Add(kind, slices.Clone(state), later)
			}
			state[at] -= more
		}
	}
}
