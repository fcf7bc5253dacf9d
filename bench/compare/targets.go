package main

import (
	"fmt"
	"math"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// target is a figure that we want to reach. It is a ratio of paired rounds, or a figure that does
// not depend on the speed of the machine.
type target struct {
	row     string
	want    float64
	reached harness.Spread
	atMost  bool // otherwise at least
}

// The results that a target can have.
const (
	met         = "Met"
	missed      = "Missed"
	undecided   = "Undecided"
	notMeasured = "Not measured"
)

// result returns whether the target was reached. It is undecided if the target lies within the
// spread of the rounds.
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

// String returns the target and what was reached, such as "one hot key, to ulule: 6.23 (≥12.0)".
func (t target) String() string {
	sign := "≥"
	if t.atMost {
		sign = "≤"
	}
	return fmt.Sprintf("%s: %s (%s%s)", t.row, harness.Number(t.reached.Median), sign, harness.Number(t.want))
}

func (b *bench) targets() (all []target) {
	all = append(all, b.redisTargets()...)
	all = append(all, b.localTargets()...)
	all = append(all, b.middlewareTargets()...)
	return append(all, b.serverTargets()...)
}

// crowd is the number of goroutines of most targets.
const crowd = 256

func (b *bench) redisTargets() []target {
	to := func(workload, ours, theirs string, goroutines int, n number) harness.Spread {
		return b.pairs(cell{workload, ours, goroutines}, cell{workload, theirs, goroutines}, n)
	}
	bucket := func(workload, theirs string) harness.Spread {
		return to(workload, rivals.TokenBucket, theirs, crowd, perSecond)
	}
	crowded := cell{uniformKeys, rivals.TokenBucket, crowd}
	usedUp := mostAdmitted(b.outcomes[cell{refusedKey, rivals.TokenBucket, crowd}])
	all := []target{
		{"one hot key, to ulule", 12, bucket(hotKey, rivals.Ulule), false},
		{"one hot key, p99 to ulule", 0.2, to(hotKey, rivals.TokenBucket, rivals.Ulule, crowd, percentile(99)), true},
		{"100k keys uniform, to one script per decision", 1.5, bucket(uniformKeys, scriptAlone), false},
		{"100k keys uniform, to one key per script", 1.5, bucket(uniformKeys, rivals.OneKey), false},
		{"100k keys uniform, to redis_rate", 4, bucket(uniformKeys, rivals.RedisRate), false},
		{"100k keys uniform, to ulule", 2.5, bucket(uniformKeys, rivals.Ulule), false},
		{"100k keys uniform, to rueidis", 1.3, bucket(uniformKeys, rivals.Rueidis), false},
		{"100k keys uniform, scripts per decision", 0.3, b.of(crowded, scripts), true},
		{"100k keys uniform, allocations to a bare EvalSha", 0.6, to(uniformKeys, rivals.TokenBucket, rivals.Bare, crowd, mallocs), true},
		{"100k keys zipf, to one script per decision", 2, bucket(zipfKeys, scriptAlone), false},
		{"100k keys uniform, 16 goroutines, to a bare EvalSha", 1.5, to(uniformKeys, rivals.TokenBucket, rivals.Bare, 16, perSecond), false},
		{"one goroutine, p50 to a bare EvalSha of our script", 1.05, to(hotKey, rivals.TokenBucket, rivals.SameScript, 1, percentile(50)), true},
		{"a used-up key, to a counter without Redis", 0.5, bucket(refusedKey, rivals.Here), false},
		{"a used-up key: admitted to the limit", 1, bytesRatio(usedUp, float64(rivals.UsedUp.Max)), true},
		{"a lease through a guard, to a counter without Redis", 0.5, to(hotKey, rivals.Leased.Name, rivals.Here, crowd, perSecond), false},
		{"a cluster of 3 masters to one of 1, decisions per CPU time", 0.9, to(masters, clusterOf(3), clusterOf(1), crowd, perCPU), false},
	}
	for _, form := range []string{rivals.OnAutoPipeline, rivals.OnAutoPipeline + rivals.FullDuplex} {
		rate, script := rivals.RedisRate+form, rivals.Bare+form
		all = append(all,
			target{"one hot key, to " + rate, 8, bucket(hotKey, rate), false},
			target{"100k keys uniform, to " + rate, 2.5, bucket(uniformKeys, rate), false},
			target{"100k keys uniform, to a " + script, 1.2, bucket(uniformKeys, script), false},
			target{"100k keys uniform, 16 goroutines, to " + rate, 1.4, to(uniformKeys, rivals.TokenBucket, rate, 16, perSecond), false},
		)
	}
	for _, workload := range []string{hotKey, uniformKeys, zipfKeys} {
		all = append(all, target{
			workload + ", SlidingWindow to TokenBucket", 1 / 1.3, to(workload, rivals.SlidingWindow, rivals.TokenBucket, crowd, perSecond), false,
		})
	}
	return all
}

// localPairs returns the ratio of a number of our TokenBucket to the same number of another limiter
// in this process.
func (b *bench) localPairs(workload, other string, n number) harness.Spread {
	return b.pairs(cell{workload: workload, rival: rivals.TokenBucket}, cell{workload: workload, rival: other}, n)
}

func (b *bench) localTargets() []target {
	byTheHour := b.pairs(cell{workload: oneKey, rival: rivals.ByTheHour}, cell{workload: oneKey, rival: rivals.TokenBucket}, nanos)
	return []target{
		{"in process, one key, to go-limiter", 0.8, b.localPairs(oneKey, rivals.GoLimiter, nanos), true},
		{"in process, one key, to " + rivals.Floor, 1.5, b.localPairs(oneKey, rivals.Floor, nanos), true},
		{"in process, 100k keys, to go-limiter", 1, b.localPairs(allKeys, rivals.GoLimiter, nanos), true},
		{"in process, 100k keys, to " + rivals.Floor, 2, b.localPairs(allKeys, rivals.Floor, nanos), true},
		{"in process, 100k keys, CPU time to " + rivals.Floor, 2, b.localPairs(allKeys, rivals.Floor, clientNanos), true},
		{"in process, a bucket by the hour to one by the minute", 1, byTheHour, true},
		{"in process, heap of TokenBucket to go-limiter", 1, bytesRatio(b.heapBytes[rivals.TokenBucket], b.heapBytes[rivals.GoLimiter]), true},
		{"in process, heap of a busy SlidingWindow to go-limiter", 3, bytesRatio(b.heapBytes[busySlidingWindow], b.heapBytes[rivals.GoLimiter]), true},
	}
}

func (b *bench) middlewareTargets() (all []target) {
	for _, m := range rivals.Middlewares {
		to := func(ours, theirs string, want float64) {
			row := fmt.Sprintf("added to %s, %s to %s", m.Framework, ours, theirs)
			all = append(all, target{row, want, b.addedPairs(m.Framework, ours, theirs), true})
		}
		switch {
		case m.Like == "":
		case m.Name == rivals.Ulule:
			to(m.Like, m.Name, 0.5)
		case m.Name == m.Framework+"'s own":
			to(m.Like, m.Name, 1)
		case m.Name == rivals.InHandler:
			to(m.Name, m.Like, 1.1) // as the middleware, within a tenth
		}
	}
	return all
}

func (b *bench) serverTargets() []target {
	to := func(script, answer, toScript, toAnswer string) harness.Spread {
		return b.pairs(timeOf(script, answer), timeOf(toScript, toAnswer), serverMicros)
	}
	weight := func(of, theirs string) harness.Spread { return bytesRatio(b.weights[of].busy, b.weights[theirs].busy) }
	return []target{
		{"server's time, TokenBucket to redis_rate", 0.70, to(rivals.TokenBucket, allowedCall, rivals.RedisRate, allowedCall), true},
		{"server's time, SlidingWindow to TokenBucket", 1.2, to(rivals.SlidingWindow, allowedCall, rivals.TokenBucket, allowedCall), true},
		{"server's time, TokenBucket refused to allowed", 0.65, to(rivals.TokenBucket, refusedCall, rivals.TokenBucket, allowedCall), true},
		{"server's time, SlidingWindow refused to allowed", 0.80, to(rivals.SlidingWindow, refusedCall, rivals.SlidingWindow, allowedCall), true},
		{"a key in Redis, TokenBucket to redis_rate", 1.5, weight(rivals.TokenBucket, rivals.RedisRate), true},
		{"a key in Redis, FixedWindow to redis_rate", 1.5, weight(rivals.FixedWindow, rivals.RedisRate), true},
		{"a key in Redis, a busy SlidingWindow to redis_rate", 4.5, weight(rivals.SlidingWindow, rivals.RedisRate), true},
	}
}
