package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

func (b *bench) processText(t *strings.Builder) {
	table := harness.NewTable("limiter", "workload", "processes", "decisions/s", "to TokenBucket", "p50 µs", "p99 µs",
		"client CPU µs", "server CPU µs", "errors")
	for _, w := range b.processPicks {
		for _, n := range b.settings.processes {
			for _, rival := range processRivals {
				c := cell{w, rival, processGoroutines, n}
				if len(b.outcomes[c]) == 0 {
					continue
				}
				table.Row(rival, w, n, b.of(c, perSecond), b.toOurs(c).In("x"), b.of(c, percentile(50)).Median, b.of(c, percentile(99)).Median,
					b.of(c, clientMicros).Median, b.of(c, serverMicros).Median, errorsOf(b.outcomes[c], true))
			}
		}
	}
	part(t, fmt.Sprintf("## On Redis: several processes, %d goroutines each\n\n", processGoroutines), table)
}

func (b *bench) bystanderText(t *strings.Builder) {
	before := fmt.Sprintf("## On Redis: another client's GET\n\nAnother process reads strings with %d goroutines while %d goroutines call %s.\n\n",
		bystanderGoroutines, crowd, uniformKeys)
	table := harness.NewTable("beside", "decisions/s", "GET p50 µs", "GET p99 µs", "p99 to TokenBucket", "GETs/s")
	for _, load := range append([]string{noLoad}, bystanderLoads...) {
		c := reads(load)
		if len(b.outcomes[c]) > 0 {
			table.Row(load, b.of(besideReads(load), perSecond), b.of(c, percentile(50)), b.of(c, percentile(99)),
				b.pairs(c, reads(rivals.TokenBucket), percentile(99)).In("x"), b.of(c, perSecond).Median)
		}
	}
	part(t, before, table)
}

// These functions return numbers of a call of a limiter that counts in the process.

func nanosOf(l local) float64  { return l.nanos }
func cpuOf(l local) float64    { return l.cpu }
func allocsOf(l local) float64 { return l.allocs }
func bytesOf(l local) float64  { return l.bytes }

// localOf returns the spread of one number of a limiter that counts in the process.
func (r *report) localOf(c cell, number func(local) float64) harness.Spread {
	return harness.SpreadBy(r.local[c], number)
}

// localPairs returns the spread of the ratio of one number of two limiters within each round.
func (r *report) localPairs(a, b cell, number func(local) float64) harness.Spread {
	return harness.Pairs(harness.Values(r.local[a], number), harness.Values(r.local[b], number))
}

// failed returns the percentage of calls that a limiter refused in its worst round, although the
// limit allows them all.
func (r *report) failed(c cell) (percent float64) {
	for _, l := range r.local[c] {
		percent = max(percent, l.refused)
	}
	return percent
}

func (b *bench) oneKey(rival string) cell { return cell{workload: keysInProcess(1), rival: rival} }

func (b *bench) allKeys(rival string) cell {
	return cell{workload: keysInProcess(b.manyKeys), rival: rival}
}

func (b *bench) localText(t *strings.Builder) {
	before := fmt.Sprintf("## %s\n\nAll cores call. The time is the elapsed time of a call, the CPU time that of all cores. "+
		"The heap is of %s keys, the subjects not counted. Every call is within the limit; "+
		"\"failed\" are the calls on one key that were refused although the limit allows them. "+
		"%q is no limiter: it shows the least that one can cost.\n\n",
		inProcessHeading, harness.Number(float64(b.heapKeys)), rivals.Floor)
	keys := harness.Number(float64(b.manyKeys)) + " keys"
	table := harness.NewTable("limiter", "ns, one key", "to TokenBucket", "CPU ns, one key", "ns, "+keys,
		"to TokenBucket", "CPU ns, "+keys, "allocs", "bytes", "heap bytes per key", "failed %")
	for _, r := range rivals.InThisProcess {
		one, all := b.oneKey(r.Name), b.allKeys(r.Name)
		if len(b.local[one]) == 0 && math.IsNaN(b.heapOf(r.Name)) {
			continue
		}
		table.Row(r.Name, b.localOf(one, nanosOf), b.localPairs(one, b.oneKey(rivals.TokenBucket), nanosOf).In("x"), b.localOf(one, cpuOf).Median,
			b.localOf(all, nanosOf), b.localPairs(all, b.allKeys(rivals.TokenBucket), nanosOf).In("x"), b.localOf(all, cpuOf).Median,
			b.localOf(all, allocsOf).Median, b.localOf(all, bytesOf).Median, b.heapOf(r.Name), b.failed(one))
	}
	part(t, before, table)
	if !math.IsNaN(b.busyHeap) {
		fmt.Fprintf(t, "SlidingWindow with calls in several parts of its window: %s heap bytes per key.\n\n", harness.Number(b.busyHeap))
	}
}

// middlewareCell returns the cell of a limit around a handler.
func middlewareCell(framework, name string) cell { return cell{workload: framework, rival: name} }

// added returns what a middleware adds to its framework's bare handler in each round.
func (r *report) added(framework, name string, number func(local) float64) []float64 {
	with := harness.Values(r.local[middlewareCell(framework, name)], number)
	without := harness.Values(r.local[middlewareCell(framework, rivals.None)], number)
	for i := range min(len(with), len(without)) {
		with[i] -= without[i]
	}
	return with
}

// addedPairs returns the spread of the ratio of what two middlewares of a framework add.
func (r *report) addedPairs(framework, a, b string) harness.Spread {
	return harness.Pairs(r.added(framework, a, nanosOf), r.added(framework, b, nanosOf))
}

func (b *bench) middlewareText(t *strings.Builder) {
	table := harness.NewTable("framework", "limit", "ns", "ns over the bare handler", "to ours, like for like", "CPU ns over it", "allocs over it", "bytes")
	for _, m := range rivals.Middlewares {
		c := middlewareCell(m.Framework, m.Name)
		added := func(number func(local) float64) harness.Spread {
			return harness.SpreadOf(b.added(m.Framework, m.Name, number))
		}
		switch {
		case len(b.local[c]) == 0:
		case m.Name == rivals.None:
			table.Row(m.Framework, m.Name, b.localOf(c, nanosOf), "", "", "", "", b.localOf(c, bytesOf).Median)
		default:
			table.Row(m.Framework, m.Name, b.localOf(c, nanosOf), added(nanosOf), b.addedPairs(m.Framework, m.Name, m.Like).In("x"),
				added(cpuOf).Median, max(0, added(allocsOf).Median), b.localOf(c, bytesOf).Median)
		}
	}
	part(t, "## "+middlewareHeading+"\n\nAll cores call, from one address. Each is compared with ours that sends the same headers: none, X-RateLimit, or by default RateLimit and RateLimit-Policy.\n\n", table)
}

func (b *bench) costText(t *strings.Builder) {
	before := fmt.Sprintf("## The server's time\n\nThe time of its main thread for a decision. The scripts are those that the library "+
		"sends for %s existing keys, over %d connections with %d scripts in flight on each.\n\n",
		harness.Number(float64(b.costKeys)), costConnections, costDepth)
	table := harness.NewTable("script", "answer", "µs", "to TokenBucket, allowed", "decisions/s", "decisions per script", "bytes in", "bytes out")
	for _, c := range b.costs {
		table.Row(c.script, c.answer, harness.SpreadOf(c.micros), b.costPairs(c.script, c.answer, rivals.TokenBucket, allowedCall).In("x"),
			harness.SpreadOf(c.perSecond).Median, float64(c.decisions)/float64(len(c.calls)), c.in, c.out)
	}
	part(t, before, table)
}

func (b *bench) memoryText(t *strings.Builder) {
	before := fmt.Sprintf("## Memory of a key in Redis\n\nMEMORY USAGE with a subject of %d characters, after one call and after %d that were spread over the window.\n\n",
		harness.KeyLen, busyCalls)
	table := harness.NewTable("limiter", "bytes after 1", fmt.Sprintf("bytes after %d", busyCalls))
	for _, r := range rivals.OnRedis {
		if w, found := b.weights[r.Name]; found {
			table.Row(r.Name, w.cold, w.busy)
		}
	}
	part(t, before, table)
}

func (b *bench) growthText(t *strings.Builder) {
	before := fmt.Sprintf("## How it grows\n\nSlidingWindow, %d goroutines, uniform keys. The masters share this machine's cores with each other and the client.\n\n", crowd)
	table := harness.NewTable("setting", "decisions/s", "to the first of its kind", "p99 µs", "client CPU µs", "server CPU µs", "errors")
	for _, g := range b.growths {
		c := growCell(g.setting)
		table.Row(g.setting, b.of(c, perSecond), b.pairs(c, growCell(g.first), perSecond).In("x"), b.of(c, percentile(99)).Median,
			b.of(c, clientMicros).Median, b.of(c, serverMicros).Median, errorsOf(b.outcomes[c], true))
	}
	part(t, before, table)
}
