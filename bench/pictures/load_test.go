package main

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
)

// All algorithms get the same load, in every run.
func TestLoadIsTheSameEachTime(t *testing.T) {
	if !reflect.DeepEqual(clients(), clients()) {
		t.Error("the load differs from one time to the next")
	}
}

func TestLoadIsInOrderAndWithinTheRun(t *testing.T) {
	for _, c := range clients() {
		if !slices.IsSortedFunc(c.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }) {
			t.Errorf("%s: the calls are not in order", c.name)
		}
		first, last := c.arrivals[0], c.arrivals[len(c.arrivals)-1]
		if first.at < 0 || last.at >= runTime || last.at < runTime*9/10 {
			t.Errorf("%s calls from %v to %v, and the run lasts %v", c.name, first.at, last.at, runTime)
		}
	}
}

// An axis is fixed, so that pictures can be compared. The load must fit on it.
func TestLoadFitsItsAxis(t *testing.T) {
	for _, c := range clients() {
		g := graphOf(asPlanned(c))
		if highest, end := slices.Max(g.offered), c.axis[len(c.axis)-1]; highest > end || highest < end/2 {
			t.Errorf("%s offers up to %d calls in %v, on an axis that ends at %d", c.name, highest, barWidth, end)
		}
	}
}

// asPlanned is a made-up run: each call comes when it is due, and a window that starts every two
// seconds admits maxCalls.
func asPlanned(c client) []call {
	var calls []call
	admitted := map[int]int{}
	for _, next := range c.arrivals {
		number := int(next.at / window)
		admitted[number]++
		calls = append(calls, call{next.at, admitted[number] <= maxCalls, next.at, next.at + window})
	}
	return calls
}
