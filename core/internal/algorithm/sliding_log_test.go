package algorithm_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// list is a log as its promise reads: every admitted call, each counting until a whole window later.
type list struct {
	limit    algorithm.Limit
	admitted []admission
}

// answer predicts a verdict from all that was ever admitted.
func (l *list) answer(now, cost int64) (want algorithm.Verdict) {
	used, newest := int64(0), int64(0)
	for _, call := range l.admitted {
		if now-call.at < l.limit.Window {
			used, newest = used+call.cost, call.at
		}
	}
	want = algorithm.Verdict{At: now, Remaining: l.limit.Max - used}
	if used > 0 {
		want.ResetAfter = newest + l.limit.Window - now
	}
	for _, call := range l.admitted {
		if used+cost <= l.limit.Max {
			break
		}
		if now-call.at < l.limit.Window {
			used, want.RetryAfter = used-call.cost, call.at+l.limit.Window-now
		}
	}
	return want
}

func (l *list) check(t failer, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	want := l.answer(now, cost)
	if want.RetryAfter == 0 {
		l.admitted = append(l.admitted, admission{now, cost})
		want.Remaining, want.ResetAfter = want.Remaining-cost, l.limit.Window
	}
	if v != want {
		t.Errorf("got %+v, want %+v", v, want)
	}
}

func TestSlidingLogIsExact(t *testing.T) {
	for _, window := range windows {
		for _, most := range []int64{1, 7, algorithm.MaxEntries} {
			t.Run(fmt.Sprintf("%d per %d", most, window), func(t *testing.T) {
				limit := algorithm.Windowed(algorithm.SlidingLog, most, window)
				play(t, limit, func() model { return &list{limit: limit} })
			})
		}
	}
}

// The calls that count are told newest first, with their notes, and no others.
func TestRecordsAreThoseThatCount(t *testing.T) {
	limit := algorithm.Windowed(algorithm.SlidingLog, 100, second)
	e := newEngines(early)
	for i := range int64(5) {
		e.now = early + i*second/4
		e.decide(true, e.now, []algorithm.Counter{{Key: []byte("log"), Limit: &limit, Cost: i + 1, Mark: fmt.Sprint("call ", i)}})
	}
	got := e.records("log", &limit)
	if len(got) != 4 {
		t.Fatalf("%d calls, want the 4 of the last second: %v", len(got), got)
	}
	for i, r := range got {
		n := int64(4 - i)
		if want := (algorithm.Record{At: early + n*second/4, Cost: n + 1, Note: fmt.Sprint("call ", n)}); r != want {
			t.Errorf("record %d is %+v, want %+v", i, r, want)
		}
	}
	e.run(t, startServer(t), timed, nil)
}
