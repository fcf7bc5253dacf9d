package main

import (
	"cmp"
	"slices"
	"time"
)

// graph is the run of a client, in bars of barWidth.
type graph struct {
	offered  []int
	admitted []int
	together []int // the most admitted calls that counted at one moment
}

func graphOf(calls []call) graph {
	bars := int(runTime / barWidth)
	g := graph{make([]int, bars), make([]int, bars), together(calls, bars)}
	for _, c := range calls {
		g.offered[bar(c.requested, bars)]++
		if c.admitted {
			g.admitted[bar(c.requested, bars)]++
		}
	}
	return g
}

// bar returns the bar of a moment. Calls that come late, after the end, are in the last bar.
func bar(at time.Duration, bars int) int { return min(int(at/barWidth), bars-1) }

// together returns, for each bar, the highest number of admitted calls that counted at one moment.
func together(calls []call, bars int) []int {
	peaks, now, next := make([]int, bars), 0, 0
	changes := changesOf(calls)
	for i := range peaks {
		peaks[i] = now
		for ; next < len(changes) && bar(changes[next].at, bars) == i; next++ {
			now += changes[next].by
			peaks[i] = max(peaks[i], now)
		}
	}
	return peaks
}

type change struct {
	at time.Duration
	by int
}

// changesOf returns the moments when calls start and stop counting, in order of time. At the same
// moment, stops come before starts, because they make room.
func changesOf(calls []call) []change {
	var changes []change
	for _, c := range calls {
		if c.admitted && c.from < c.until {
			changes = append(changes, change{c.from, 1}, change{c.until, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	return changes
}

func sum(values []int) int {
	total := 0
	for _, v := range values {
		total += v
	}
	return total
}
