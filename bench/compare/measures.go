package main

import (
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// The names of the figures from which RESULTS.md and the charts are drawn.
const (
	rate       = "decisions/s"
	p50, p99   = "p50 µs", "p99 µs"
	allocs     = "allocs"
	elapsed    = "ns"
	addedTime  = "ns over the bare handler"
	addedAlloc = "allocs over it"
	toOurs     = "to ours, like for like"
	serverTime = "server's µs"
	reached    = "reached"
	heapBytes  = "heap bytes per key"
	coldBytes  = "bytes after 1 call"
	busyBytes  = "bytes after 100 calls"
)

// The parts that are not workloads.
const (
	targetsPart = "targets"
	heapPart    = "heap of a key"
	memoryPart  = "memory of a key in Redis"
)

// measure is a figure that is taken of each cell of a part.
type measure struct {
	name string
	number
}

var (
	redisMeasures = []measure{
		{rate, perSecond},
		{p50, percentile(50)},
		{p99, percentile(99)},
		{"client CPU µs", clientMicros},
		{"server CPU µs", serverMicros},
		{"scripts per decision", scripts},
		{allocs, mallocs},
		{"bytes", bytes},
	}
	localMeasures  = []measure{{elapsed, nanos}, {"CPU ns", clientNanos}, {allocs, mallocs}, {"bytes", bytes}}
	addedMeasures  = []measure{{addedTime, nanos}, {"CPU ns over it", clientNanos}, {addedAlloc, mallocs}}
	serverMeasures = []measure{{serverTime, serverMicros}, {rate, perSecond}, {"scripts per decision", scripts}, {"bytes in", bytesIn}, {"bytes out", bytesOut}}
)

// results returns the figures of the run.
func (b *bench) results(redisVersion string) *results {
	r := &results{about: append([]string{b.command()}, machine(redisVersion)...)}
	for _, t := range b.targets() {
		r.add(cell{workload: targetsPart, rival: t.row}, reached, t.reached)
	}
	for _, w := range slices.Concat(together...) {
		b.addRedis(r, w, contestantNames())
	}
	b.addRedis(r, clusterWorkload(), clusterNames)
	b.addLocal(r)
	b.addMiddlewares(r)
	b.addServer(r)
	return r
}

func (b *bench) addRedis(r *results, w workload, names []string) {
	for _, n := range w.counts(b.settings) {
		for _, name := range names {
			c := cell{w.name, name, n}
			b.addMeasures(r, c, redisMeasures)
			r.add(c, "to "+strings.TrimPrefix(w.base, "accesslimit "), b.pairs(c, cell{w.name, w.base, n}, perSecond))
			r.add(c, "failed %", b.share(c, failed))
			if w.exact {
				r.add(c, "admitted", single(mostAdmitted(b.outcomes[c])))
			} else {
				r.add(c, "refused %", b.share(c, refusedCalls))
			}
		}
	}
}

func (b *bench) addMeasures(r *results, c cell, measures []measure) {
	for _, m := range measures {
		r.add(c, m.name, b.of(c, m.number))
	}
}

func (b *bench) addLocal(r *results) {
	for _, rival := range rivals.InThisProcess {
		for _, workload := range []string{oneKey, allKeys} {
			c := cell{workload: workload, rival: rival.Name}
			b.addMeasures(r, c, localMeasures)
			r.add(c, "to TokenBucket", b.pairs(c, cell{workload: workload, rival: rivals.TokenBucket}, nanos))
			r.add(c, "failed %", b.share(c, failed))
		}
	}
	for _, rival := range rivals.InThisProcess {
		b.addHeap(r, rival.Name)
	}
	b.addHeap(r, busySlidingWindow)
}

func (b *bench) addHeap(r *results, name string) {
	if bytes, found := b.heapBytes[name]; found {
		r.add(cell{workload: heapPart, rival: name}, heapBytes, single(bytes))
	}
}

func (b *bench) addMiddlewares(r *results) {
	for _, m := range rivals.Middlewares {
		c := middlewareCell(m.Framework, m.Name)
		r.add(c, elapsed, b.of(c, nanos))
		r.add(c, "bytes", b.of(c, bytes))
		if m.Name == rivals.None {
			continue
		}
		for _, measure := range addedMeasures {
			r.add(c, measure.name, harness.SpreadOf(b.added(m.Framework, m.Name, measure.number)))
		}
		r.add(c, toOurs, b.addedPairs(m.Framework, m.Name, m.Like))
	}
}

func (b *bench) addServer(r *results) {
	for _, s := range b.scripts {
		b.addMeasures(r, s.cell(), serverMeasures)
		r.add(s.cell(), "to TokenBucket, allowed", b.pairs(s.cell(), timeOf(rivals.TokenBucket, allowedCall), serverMicros))
	}
	for _, rival := range rivals.OnRedis {
		if w, found := b.weights[rival.Name]; found {
			c := cell{workload: memoryPart, rival: rival.Name}
			r.add(c, coldBytes, single(w.cold))
			r.add(c, busyBytes, single(w.busy))
		}
	}
}
