package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

func (b *bench) processText(t *strings.Builder) {
	table := harness.NewTable("limiter", "workload", "processes", "decisions/s", "to TokenBucket", "p50 µs", "p99 µs", "server CPU µs", "errors")
	for _, w := range b.processPicks {
		for _, n := range b.settings.processes {
			ours := b.of(cell{w, rivals.TokenBucket, processGoroutines, n}, perSecond).Median
			for _, rival := range processRivals {
				c := cell{w, rival, processGoroutines, n}
				if len(b.outcomes[c]) == 0 {
					continue
				}
				speed := b.of(c, perSecond)
				table.Row(rival, w, n, spread(speed), harness.Times(harness.Ratio(speed.Median, ours)),
					b.of(c, percentile(50)).Median,
					b.of(c, percentile(99)).Median,
					b.of(c, func(o *harness.Outcome) float64 { return each(micros(o.Server.CPU), o) }).Median,
					errorsOf(b.outcomes[c], true))
			}
		}
	}
	part(t, fmt.Sprintf("## On Redis: several processes, %d goroutines each\n\n", processGoroutines), table)
}

// nanos, allocs and bytes return the cost of a call of a limiter that counts in the process.
func (r *report) nanos(c cell) harness.Spread {
	return harness.SpreadBy(r.local[c], func(l local) float64 { return l.nanos })
}

func (r *report) allocs(c cell) float64 {
	return harness.SpreadBy(r.local[c], func(l local) float64 { return l.allocs }).Median
}

func (r *report) bytes(c cell) float64 {
	return harness.SpreadBy(r.local[c], func(l local) float64 { return l.bytes }).Median
}

// failed returns the percentage of calls that a limiter refused although the limit allows them all.
func (r *report) failed(c cell) float64 {
	return harness.SpreadBy(r.local[c], func(l local) float64 { return l.refused }).Max
}

func (b *bench) localText(t *strings.Builder) {
	before := fmt.Sprintf("## %s\n\nAll cores call; the time is what passes for each call. "+
		"The heap is of %s keys, the subjects not counted. Every call is within the limit; "+
		"\"failed\" are those on one key that were not let through all the same.\n\n",
		inProcessHeading, harness.Number(float64(b.heapKeys)))
	table := harness.NewTable("limiter", "ns, one key", "to TokenBucket", fmt.Sprintf("ns, %s keys", harness.Number(float64(b.manyKeys))),
		"to TokenBucket", "allocs", "bytes", "heap bytes per key", "failed %")
	one := func(rival string) cell { return cell{workload: keysInProcess(1), rival: rival} }
	many := func(rival string) cell { return cell{workload: keysInProcess(b.manyKeys), rival: rival} }
	for _, r := range rivals.InThisProcess {
		hot, all := b.nanos(one(r.Name)), b.nanos(many(r.Name))
		if math.IsNaN(hot.Median) && math.IsNaN(b.heapOf(r.Name)) {
			continue
		}
		table.Row(r.Name, spread(hot), harness.Times(harness.Ratio(hot.Median, b.nanos(one(rivals.TokenBucket)).Median)),
			spread(all), harness.Times(harness.Ratio(all.Median, b.nanos(many(rivals.TokenBucket)).Median)),
			b.allocs(many(r.Name)), b.bytes(many(r.Name)), b.heapOf(r.Name), b.failed(one(r.Name)))
	}
	part(t, before, table)
	if !math.IsNaN(b.busyHeap) {
		fmt.Fprintf(t, "SlidingWindow with calls in several parts of its window: %s heap bytes per key.\n\n", harness.Number(b.busyHeap))
	}
}

// added returns what a middleware costs on top of its framework's bare handler.
func (b *bench) added(m rivals.Middleware) (nanos, allocs float64) {
	with, without := cell{workload: m.Framework, rival: m.Name}, cell{workload: m.Framework, rival: rivals.None}
	return b.nanos(with).Median - b.nanos(without).Median, b.allocs(with) - b.allocs(without)
}

func (b *bench) middlewareText(t *strings.Builder) {
	table := harness.NewTable("framework", "limit", "ns", "ns over the bare handler", "to ours", "allocs over it", "bytes")
	var ours float64
	for _, m := range rivals.Middlewares {
		c := cell{workload: m.Framework, rival: m.Name}
		if len(b.local[c]) == 0 {
			continue
		}
		nanos, allocs := b.added(m)
		switch m.Name {
		case rivals.None:
			ours = 0
			table.Row(m.Framework, m.Name, spread(b.nanos(c)), "", "", "", b.bytes(c))
			continue
		case "accesslimit":
			ours = nanos
		}
		table.Row(m.Framework, m.Name, spread(b.nanos(c)), nanos, harness.Times(harness.Ratio(nanos, ours)), allocs, b.bytes(c))
	}
	part(t, "## "+middlewareHeading+"\n\nAll cores call, one address, full headers where there are any.\n\n", table)
}

func (b *bench) costText(t *strings.Builder) {
	before := fmt.Sprintf("## The server's time\n\nOf its main thread, for a call as the library sends it, over %d connections x %d, %s keys that live.\n\n",
		costConnections, costDepth, harness.Number(float64(b.costKeys)))
	table := harness.NewTable("script", "answer", "µs", "to TokenBucket, allowed", "calls/s", "bytes in", "bytes out")
	ours := b.costOf(rivals.TokenBucket, allowedCall).Median
	for _, c := range b.costs {
		s := harness.SpreadOf(c.micros)
		table.Row(c.script, c.answer, spread(s), harness.Times(harness.Ratio(s.Median, ours)), harness.SpreadOf(c.perSecond).Median, c.in, c.out)
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
	before := fmt.Sprintf("## How it grows\n\n%d goroutines, uniform keys. The masters share this machine's cores with each other and the client.\n\n", growGoroutines)
	table := harness.NewTable("what", "limiter", "decisions/s", "p99 µs", "bytes of a key", "errors")
	for _, g := range b.growths {
		bytes := any("")
		if g.bytes > 0 {
			bytes = g.bytes
		}
		table.Row(g.setting, g.rival, g.perSecond, micros(g.p99), bytes, g.errors)
	}
	part(t, before, table)
}
