package main

import (
	"fmt"
	"math"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// target is a row of the table of targets.
type target struct {
	row     string
	want    float64
	reached harness.Spread
	unit    string
	atMost  bool // otherwise at least
}

// The results that a target can have.
const (
	met         = "yes"
	missed      = "**no**"
	undecided   = "not decided"
	notMeasured = "not measured"
)

// result returns whether the target is reached. A target within the spread of the rounds is not
// decided.
func (t target) result() string {
	switch {
	case math.IsNaN(t.reached.Median):
		return notMeasured
	case t.reached.Low < t.want && t.want < t.reached.High:
		return undecided
	case t.atMost == (t.reached.Median < t.want) || t.reached.Median == t.want:
		return met
	default:
		return missed
	}
}

func (t target) cells() []any {
	sign := "≥ "
	if t.atMost {
		sign = "≤ "
	}
	return []any{
		t.row, sign + harness.Number(t.want) + t.unit, t.reached.In(t.unit), harness.Ratio(t.reached.Median, t.want), t.result(),
	}
}

func (b *bench) targetTable() *harness.Table {
	table := harness.NewTable("row", "target", "reached", "reached / target", "met")
	for _, t := range b.targets() {
		table.Row(t.cells()...)
	}
	return table
}

// targets returns the targets of the design, with the figures of this run.
func (b *bench) targets() (all []target) {
	all = append(all, b.redisTargets()...)
	all = append(all, b.localTargets()...)
	all = append(all, b.middlewareTargets()...)
	return append(all, b.serverTargets()...)
}

// once is the spread of a figure that does not depend on the speed of the machine.
func once(v float64) harness.Spread { return harness.Spread{Median: v, Low: v, High: v} }

// crowd is the number of goroutines of most targets.
const crowd = 256

func (b *bench) redisTargets() []target {
	ours := func(workload string, goroutines int) cell { return cell{workload, rivals.TokenBucket, goroutines, 1} }
	versus := func(workload, rival, theirs string, goroutines int) harness.Spread {
		return b.pairs(cell{workload, rival, goroutines, 1}, cell{workload, theirs, goroutines, 1}, perSecond)
	}
	to := func(workload, theirs string) harness.Spread {
		return versus(workload, rivals.TokenBucket, theirs, crowd)
	}
	all := []target{
		{"one hot key, 256 goroutines, to ulule", 12, to(hotKey, rivals.Ulule), "x", false},
		{"one hot key, 256 goroutines, p99", 1000, b.of(ours(hotKey, crowd), percentile(99)), " µs", true},
		{"100k keys uniform, 256 goroutines, to one script per decision", 1.5, to(uniformKeys, scriptAlone), "x", false},
		{"100k keys uniform, 256 goroutines, to ours with one key per script", 1.5, to(uniformKeys, rivals.OneKey), "x", false},
		{"100k keys uniform, 256 goroutines, to redis_rate", 4, to(uniformKeys, rivals.RedisRate), "x", false},
		{"100k keys uniform, 256 goroutines, to ulule", 2, to(uniformKeys, rivals.Ulule), "x", false},
		{"100k keys uniform, 256 goroutines, to rueidis", 1.3, to(uniformKeys, rivals.Rueidis), "x", false},
		{"100k keys uniform, 256 goroutines, scripts per decision", 0.3, b.of(ours(uniformKeys, crowd), scripts), "", true},
		{"100k keys zipf, 256 goroutines, to one script per decision", 2, to(zipfKeys, scriptAlone), "x", false},
		{"100k keys uniform, 16 goroutines, to a bare EvalSha", 1.2, versus(uniformKeys, rivals.TokenBucket, rivals.Bare, 16), "x", false},
		{"one goroutine, p50 to a bare EvalSha of our script", 1.05, b.pairs(ours(hotKey, 1), cell{hotKey, rivals.SameScript, 1, 1}, percentile(50)), "x", true},
		{"a used-up key, 256 goroutines, decisions/s", 10e6, b.of(ours(refusedKey, crowd), perSecond), "", false},
		{"a used-up key: admitted", float64(rivals.UsedUp.Max), once(mostAdmitted(b.outcomes[ours(refusedKey, crowd)])), "", true},
		{"a lease through a guard, 256 goroutines, decisions/s", 10e6, b.of(cell{hotKey, rivals.Leased.Name, crowd, 1}, perSecond), "", false},
		{"allocations on Redis, uniform, 256 goroutines", 7, b.of(ours(uniformKeys, crowd), mallocs), "", true},
	}
	for _, workload := range []string{hotKey, uniformKeys, zipfKeys} {
		all = append(all, target{
			workload + ", 256 goroutines, SlidingWindow to TokenBucket", 1 / 1.3, versus(workload, rivals.SlidingWindow, rivals.TokenBucket, crowd), "x", false,
		})
	}
	return all
}

func (b *bench) localTargets() []target {
	floor := func(at func(string) cell, number func(local) float64) harness.Spread {
		return b.localPairs(at(rivals.TokenBucket), at(rivals.Floor), number)
	}
	onePeer, toOne := b.toFastestPeer(b.oneKey)
	allPeer, toAll := b.toFastestPeer(b.allKeys)
	return []target{
		{"in process, one key, to the fastest peer" + onePeer, 1, toOne, "x", true},
		{"in process, one key, to " + rivals.Floor, 1.5, floor(b.oneKey, nanosOf), "x", true},
		{"in process, one key, CPU time to " + rivals.Floor, 1.5, floor(b.oneKey, cpuOf), "x", true},
		{"in process, 100k keys, to the fastest peer" + allPeer, 1, toAll, "x", true},
		{"in process, 100k keys, to " + rivals.Floor, 2, floor(b.allKeys, nanosOf), "x", true},
		{"in process, 100k keys, CPU time to " + rivals.Floor, 2, floor(b.allKeys, cpuOf), "x", true},
		{"in process, allocations", 0, b.localOf(b.allKeys(rivals.TokenBucket), wholeAllocs), "", true},
		{"in process, heap beside the subject, TokenBucket", 64, once(b.heapOf(rivals.TokenBucket) - keyBytes), " B", true},
		{"in process, heap beside the subject, SlidingWindow busy", 256, once(b.busyHeap - keyBytes), " B", true},
	}
}

// toFastestPeer returns the peer to which our ratio of times is worst, and that ratio.
func (b *bench) toFastestPeer(at func(rival string) cell) (name string, ratio harness.Spread) {
	ratio = once(math.NaN())
	for _, r := range rivals.Peers() {
		to := b.localPairs(at(rivals.TokenBucket), at(r.Name), nanosOf)
		if !math.IsNaN(to.Median) && !(to.Median < ratio.Median) {
			name, ratio = ", "+r.Name, to
		}
	}
	return name, ratio
}

// wholeAllocs returns the allocations of a call without those of the rest of the process.
func wholeAllocs(l local) float64 { return math.Floor(l.allocs + 0.01) }

func (b *bench) middlewareTargets() (all []target) {
	for _, m := range rivals.Middlewares {
		to := func(ours, theirs string, want float64) {
			row := fmt.Sprintf("added to %s, %s to %s", m.Framework, ours, theirs)
			all = append(all, target{row, want, b.addedPairs(m.Framework, ours, theirs), "x", true})
		}
		switch {
		case m.Like == "":
		case m.Name == rivals.Ulule:
			to(m.Like, m.Name, 0.35)
		case m.Name == m.Framework+"'s own":
			to(m.Like, m.Name, 1)
		case m.Name == rivals.InHandler:
			to(m.Name, m.Like, 1.1) // as the middleware, within a tenth
		}
	}
	return all
}

// keyBytes is the size of the copy of a subject that a limiter in the process has to keep.
const keyBytes = harness.KeyLen

func (b *bench) serverTargets() []target {
	return []target{
		{"server's time, TokenBucket to redis_rate", 0.70, b.costPairs(rivals.TokenBucket, allowedCall, rivals.RedisRate, allowedCall), "x", true},
		{"server's time, SlidingWindow to TokenBucket", 1.2, b.costPairs(rivals.SlidingWindow, allowedCall, rivals.TokenBucket, allowedCall), "x", true},
		{"server's time, TokenBucket refused to allowed", 0.65, b.costPairs(rivals.TokenBucket, refusedCall, rivals.TokenBucket, allowedCall), "x", true},
		{"server's time, SlidingWindow refused to allowed", 0.80, b.costPairs(rivals.SlidingWindow, refusedCall, rivals.SlidingWindow, allowedCall), "x", true},
		{"a key in Redis, TokenBucket", 160, once(b.weightOf(rivals.TokenBucket).busy), " B", true},
		{"a key in Redis, FixedWindow", 160, once(b.weightOf(rivals.FixedWindow).busy), " B", true},
		{"a key in Redis, SlidingWindow cold", 180, once(b.weightOf(rivals.SlidingWindow).cold), " B", true},
		{"a key in Redis, SlidingWindow busy", 480, once(b.weightOf(rivals.SlidingWindow).busy), " B", true},
	}
}
