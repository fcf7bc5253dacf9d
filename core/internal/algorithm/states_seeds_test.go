package algorithm_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
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
			s.EvalSha(ctx, s.sha(timed, algorithm.BeginPause), keys, append(algorithm.AppendPause(nil, &p), now)...)
			continue
		}
		s.EvalSha(ctx, s.sha(timed, algorithm.DecideScript(a.counters)), keys, argv...)
	}
	var state []byte
	switch l.Kind {
	case algorithm.SlidingLog:
		for _, entry := range s.LRange(ctx, "counter", 0, -1).Val() {
			state = append(append(state, byte(len(entry))), entry...)
		}
	case algorithm.Concurrency:
		for _, z := range s.ZRangeWithScores(ctx, "counter", 0, -1).Val() {
			state = binary.LittleEndian.AppendUint64(state, math.Float64bits(z.Score))
		}
	default:
		state = []byte(s.Get(ctx, "counter").Val())
	}
	if len(state) == 0 {
		f.Fatalf("%s: nothing is kept of %v", l.Kind.Tag(), used)
	}
	return state
}

// addGaps adds logs after refunds from the middle, and after the clock stepped back, and the same
// logs with one more byte somewhere.
func (s *server) addGaps(f *testing.F, kind byte, l *algorithm.Limit) {
	f.Helper()
	ctx, given := context.Background(), algorithm.Verdict{}
	s.FlushDB(ctx)
	for i := range int64(4) {
		now := early + i - i/3*second/2
		call := ask{now, true, []algorithm.Counter{{Key: []byte("counter"), Limit: l, Cost: 1 + i%2}}}
		if v := s.decide(timed, call)[0]; i == 1 {
			given = v
		}
	}
	s.giveBack(given, one("counter", l, early, 1))
	var entries [][]byte
	for _, entry := range s.LRange(ctx, "counter", 0, -1).Val() {
		entries = append(entries, []byte(entry))
	}
	last := entries[len(entries)-1]
	if len(last) < 34 {
		f.Fatalf("no gaps in %q", entries)
	}
	for at := range last {
		for _, more := range []byte{0, 1, 200} {
			last[at] += more
			var state []byte
			for _, entry := range entries {
				state = append(append(state, byte(len(entry))), entry...)
			}
			for _, later := range []int64{0, second / 2, second - 1, -second} {
				f.Add(kind, slices.Clone(state), later)
			}
			last[at] -= more
		}
	}
}
