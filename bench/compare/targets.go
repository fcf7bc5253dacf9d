package main

import (
	"math"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// target is a row of the table of targets.
type target struct {
	row     string
	want    float64
	reached float64
	unit    string
	atMost  bool // otherwise at least
}

// met reports whether the target is reached. A target that was not measured is not.
func (t target) met() bool {
	if math.IsNaN(t.reached) {
		return false
	}
	if t.atMost {
		return t.reached <= t.want
	}
	return t.reached >= t.want
}

func (t target) cells() []any {
	sign, met := "≥ ", "yes"
	if t.atMost {
		sign = "≤ "
	}
	if !t.met() {
		met = "**no**"
	}
	if math.IsNaN(t.reached) {
		return []any{t.row, sign + harness.Number(t.want) + t.unit, "not measured", "-", "-"}
	}
	return []any{
		t.row, sign + harness.Number(t.want) + t.unit, harness.Number(t.reached) + t.unit,
		harness.Number(harness.Ratio(t.reached, t.want)), met,
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
	return append(all, b.serverTargets()...)
}

// crowd is the number of goroutines of most targets.
const crowd = 256

func (b *bench) redisTargets() []target {
	median := func(workload, rival string, goroutines int) float64 {
		return b.speed(workload, rival, goroutines).Median
	}
	versus := func(workload, ours, theirs string, goroutines int) float64 {
		return harness.Ratio(median(workload, ours, goroutines), median(workload, theirs, goroutines))
	}
	latency := func(workload, rival string, goroutines int, p float64) float64 {
		return measured(b.of(cell{workload, rival, goroutines, 1}, percentile(p)).Median)
	}
	allocs := func(workload string, goroutines int) float64 {
		return b.of(cell{workload, rivals.TokenBucket, goroutines, 1}, func(o *harness.Outcome) float64 { return each(float64(o.Mallocs), o) }).Median
	}
	ceiling := harness.SpreadOf(b.ceiling).Median
	admitted := math.NaN()
	if rounds := b.outcomes[cell{refusedKey, rivals.TokenBucket, crowd, 1}]; len(rounds) > 0 {
		admitted = float64(mostAdmitted(rounds))
	}
	over := median(refusedKey, rivals.TokenBucket, crowd)
	all := []target{
		{"one hot key, 256 goroutines, to redis_rate", 10, versus(hotKey, rivals.TokenBucket, rivals.RedisRate, crowd), "x", false},
		{"one hot key, 256 goroutines, to ulule", 10, versus(hotKey, rivals.TokenBucket, rivals.Ulule, crowd), "x", false},
		{"one hot key, 256 goroutines, p99", 1500, latency(hotKey, rivals.TokenBucket, crowd, 99), " µs", true},
		{"one hot key, 256 goroutines, SlidingWindow to TokenBucket", 1 / 1.3, versus(hotKey, rivals.SlidingWindow, rivals.TokenBucket, crowd), "x", false},
		{"100k keys uniform, 256 goroutines, to redis_rate", 2.5, versus(uniformKeys, rivals.TokenBucket, rivals.RedisRate, crowd), "x", false},
		{"100k keys uniform, 256 goroutines, to ulule", 1.9, versus(uniformKeys, rivals.TokenBucket, rivals.Ulule, crowd), "x", false},
		{"100k keys uniform, 256 goroutines, to the script alone", 0.75, harness.Ratio(median(uniformKeys, rivals.TokenBucket, crowd), ceiling), "x", false},
		{"100k keys uniform, 256 goroutines, SlidingWindow to TokenBucket", 1 / 1.3, versus(uniformKeys, rivals.SlidingWindow, rivals.TokenBucket, crowd), "x", false},
		{"100k keys zipf, 256 goroutines, to the script alone", 1, harness.Ratio(median(zipfKeys, rivals.TokenBucket, crowd), ceiling), "x", false},
		{"100k keys zipf, 256 goroutines, SlidingWindow to TokenBucket", 1 / 1.3, versus(zipfKeys, rivals.SlidingWindow, rivals.TokenBucket, crowd), "x", false},
		{"one goroutine, p50 to a bare EvalSha", 1.1, harness.Ratio(latency(hotKey, rivals.TokenBucket, 1, 50), latency(hotKey, rivals.Bare, 1, 50)), "x", true},
		{"16 goroutines, one key, decisions/s to a bare EvalSha", 1, versus(hotKey, rivals.TokenBucket, rivals.Bare, 16), "x", false},
		{"allocations on Redis, uniform, 64 goroutines", 7, allocs(uniformKeys, 64), "", true},
		{"allocations on Redis, uniform, 256 goroutines", 7, allocs(uniformKeys, crowd), "", true},
		{"a refused key, 256 goroutines, decisions/s", 10e6, over, "", false},
		{"a refused key: admitted", float64(rivals.UsedUp.Max), admitted, "", true},
		{"leased permits, one hot key, 256 goroutines, decisions/s", 10e6, median(hotKey, rivals.Leased.Name, crowd), "", false},
	}
	if !b.quick {
		all = append(all, target{
			"16 goroutines, 100k keys, decisions/s to a bare EvalSha", 1, versus(uniformKeys, rivals.TokenBucket, rivals.Bare, 16), "x", false,
		})
	}
	return all
}

// measured returns a latency, or not a number for the 0 of a cell without calls.
func measured(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func (b *bench) localTargets() (all []target) {
	one := cell{workload: keysInProcess(1), rival: rivals.TokenBucket}
	many := cell{workload: keysInProcess(b.manyKeys), rival: rivals.TokenBucket}
	all = []target{
		{"in process, one key, TokenBucket", 45, b.nanos(one).Median, " ns", true},
		{"in process, 100k keys, TokenBucket", 120, b.nanos(many).Median, " ns", true},
		{"in process, allocations", 0, math.Floor(b.allocs(many) + 0.01), "", true},
		{"in process, heap beside the subject, TokenBucket", 64, b.heapOf(rivals.TokenBucket) - keyBytes, " B", true},
		{"in process, heap beside the subject, SlidingWindow busy", 256, b.busyHeap - keyBytes, " B", true},
	}
	for _, m := range rivals.Middlewares {
		if m.Name == "accesslimit" && m.Framework != "gRPC" {
			nanos, allocs := b.added(m)
			all = append(all,
				target{m.Framework + " middleware over the bare handler", 250, nanos, " ns", true},
				target{m.Framework + " middleware over the bare handler, allocations", 3, math.Floor(allocs + 0.01), "", true})
		}
	}
	return all
}

// keyBytes is the size of the copy of a subject that a limiter in the process has to keep.
const keyBytes = harness.KeyLen

func (b *bench) serverTargets() []target {
	cost := func(script, answer string) float64 { return b.costOf(script, answer).Median }
	bucket, window := cost(rivals.TokenBucket, allowedCall), cost(rivals.SlidingWindow, allowedCall)
	return []target{
		{"server's time, TokenBucket to redis_rate", 0.70, harness.Ratio(bucket, cost(rivals.RedisRate, allowedCall)), "x", true},
		{"server's time, SlidingWindow to TokenBucket", 1.2, harness.Ratio(window, bucket), "x", true},
		{"server's time, TokenBucket refused to allowed", 0.65, harness.Ratio(cost(rivals.TokenBucket, refusedCall), bucket), "x", true},
		{"server's time, SlidingWindow refused to allowed", 0.80, harness.Ratio(cost(rivals.SlidingWindow, refusedCall), window), "x", true},
		{"a key in Redis, TokenBucket", 160, b.weightOf(rivals.TokenBucket).busy, " B", true},
		{"a key in Redis, FixedWindow", 160, b.weightOf(rivals.FixedWindow).busy, " B", true},
		{"a key in Redis, SlidingWindow cold", 180, b.weightOf(rivals.SlidingWindow).cold, " B", true},
		{"a key in Redis, SlidingWindow busy", 480, b.weightOf(rivals.SlidingWindow).busy, " B", true},
	}
}
