package main

import (
	"slices"
	"testing"
	"time"
)

func TestGraphAddsUp(t *testing.T) {
	for _, c := range clients() {
		calls := asPlanned(c)
		g := graphOf(calls)
		if sum(g.offered) != len(calls) {
			t.Errorf("%s: %d calls are drawn of %d", c.name, sum(g.offered), len(calls))
		}
		for i := range g.offered {
			if g.admitted[i] > g.offered[i] {
				t.Errorf("%s: bar %d has %d calls admitted of %d offered", c.name, i, g.admitted[i], g.offered[i])
			}
		}
		if highest := slices.Max(g.together); highest < maxCalls || highest > 2*maxCalls {
			t.Errorf("%s: at most %d calls count together; the windows let through %d to %d", c.name, highest, maxCalls, 2*maxCalls)
		}
	}
}

func TestTogetherIsTheMostAtOneMoment(t *testing.T) {
	ms := time.Millisecond
	calls := []call{
		{0, true, 10 * ms, 110 * ms},
		{0, true, 20 * ms, 30 * ms},
		{0, true, 30 * ms, 40 * ms}, // comes when the one above goes: never three
		{0, false, 25 * ms, 500 * ms},
		{0, true, 350 * ms, 340 * ms}, // ended before the answer came: never counted
	}
	if got, want := together(calls, 4), []int{2, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("together: %v, want %v", got, want)
	}
}

func TestLateCallIsInTheLastBar(t *testing.T) {
	g := graphOf([]call{{runTime + time.Second, true, runTime + time.Second, runTime + 3*time.Second}})
	last := len(g.offered) - 1
	if got, want := [3]int{g.offered[last], g.admitted[last], g.together[last]}, [3]int{1, 1, 1}; got != want {
		t.Errorf("offered, admitted and together in the last bar: %v, want %v", got, want)
	}
}
