package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// At their full size, and over the longest window, both engines still agree: full, refused, with one entry taken out of the middle,
// after the clock stepped back, and when all have gone.
func TestEnginesAgreeAtFullSize(t *testing.T) {
	s := startServer(t)
	for _, kind := range []algorithm.Kind{algorithm.SlidingLog, algorithm.Concurrency} {
		limit, e := algorithm.Windowed(kind, algorithm.MaxEntries, algorithm.MaxWindow), newEngines(early)
		counters := func(n int) []algorithm.Counter {
			return []algorithm.Counter{{Key: []byte("full"), Limit: &limit, Cost: 1, Mark: fmt.Sprint("call ", n)}}
		}
		for n := range algorithm.MaxEntries {
			e.now++
			e.decide(true, e.now, counters(n))
		}
		full := e.decide(true, e.now, counters(-1))[0]
		if full.RetryAfter != algorithm.MaxWindow-algorithm.MaxEntries+1 || full.Remaining != 0 {
			t.Errorf("%s: full: %+v", kind.Tag(), full)
		}
		const middle = algorithm.MaxEntries / 2
		e.giveBack(algorithm.Charge{Key: []byte("full"), Limit: &limit, Cost: 1, At: early + 1 + middle, Mark: fmt.Sprint("call ", middle)})
		if v := e.decide(true, e.now, counters(-2))[0]; v.RetryAfter != 0 || v.Remaining != 0 {
			t.Errorf("%s: one given back: %+v", kind.Tag(), v)
		}
		if kind == algorithm.SlidingLog {
			if n := len(e.records("full", &limit)); n != algorithm.MaxEntries {
				t.Errorf("%d records", n)
			}
		}
		e.now -= hour
		if v := e.decide(true, e.now, counters(-3))[0]; v.RetryAfter != algorithm.MaxWindow {
			t.Errorf("%s: clock an hour back: %+v", kind.Tag(), v)
		}
		e.now += algorithm.MaxWindow
		if v := e.decide(true, e.now, counters(-4))[0]; v.RetryAfter != 0 || v.Remaining != algorithm.MaxEntries-1 {
			t.Errorf("%s: a window later: %+v", kind.Tag(), v)
		}
		e.run(t, s, timed, nil)
	}
}

// A single call may take all that a log holds, and the sums of many such calls stay exact.
func TestSlidingLogTakesItsMaxAtOnce(t *testing.T) {
	limit, e := algorithm.Windowed(algorithm.SlidingLog, algorithm.MaxEntries, millisecond), newEngines(early)
	call := []algorithm.Counter{{Key: []byte("log"), Limit: &limit, Cost: algorithm.MaxEntries}}
	e.decide(true, e.now, call)
	for range 300 {
		e.now += millisecond - 1
		if v := e.decide(true, e.now, call)[0]; v.RetryAfter != 1 {
			t.Fatalf("1 µs too early: %+v", v)
		}
		e.now++
		if v := e.decide(true, e.now, call)[0]; v.RetryAfter != 0 {
			t.Fatalf("after RetryAfter: %+v", v)
		}
	}
	e.run(t, startServer(t), timed, nil)
}
