package main

import (
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// text returns RESULTS.md. A section without figures is left out.
func (b *bench) text(redisVersion string) string {
	var t strings.Builder
	b.head(&t, redisVersion)
	t.WriteString("## Targets\n\n" + b.targetTable().String() + "\n")
	for _, same := range together {
		for _, w := range same {
			b.workloadText(&t, w, contestantNames())
		}
	}
	clusters := uniform
	clusters.name, clusters.base, clusters.all, clusters.few = masters, clusterOf(1), []int{crowd}, []int{crowd}
	b.workloadText(&t, clusters, []string{clusterOf(1), clusterOf(3)})
	b.inProcessText(&t)
	b.middlewareText(&t)
	b.serverTimeText(&t)
	b.memoryText(&t)
	return strings.TrimRight(t.String(), "\n") + "\n"
}

// section writes a table and the text before it, or nothing if the table is empty.
func section(t *strings.Builder, heading, before string, table *harness.Table) {
	if !table.Empty() {
		t.WriteString("## " + heading + "\n\n" + before + table.String() + "\n")
	}
}

func (b *bench) head(t *strings.Builder, redisVersion string) {
	t.WriteString("# Results\n\n")
	fmt.Fprintf(t, "Written by `%s`; [README.md](README.md) says what is measured and how to read it. ", b.command())
	if b.quick {
		t.WriteString("**A quick run** has few rounds, so less is decided. ")
	}
	t.WriteString("Client and server share the machine, so ratios count, not the figures. " +
		"A ratio is taken within each round. " +
		"Figures and ratios are the median of the rounds, with its 95 % confidence interval in brackets.\n\n")
	for _, line := range machine(redisVersion) {
		t.WriteString("- " + line + "\n")
	}
	t.WriteString("\nNot measured:\n\n")
	for _, left := range rivals.Left {
		fmt.Fprintf(t, "- %s: %s\n", left[0], left[1])
	}
	t.WriteString("\n")
}

func (b *bench) workloadText(t *strings.Builder, w workload, names []string) {
	before := ""
	head := []string{
		"limiter", "goroutines", "decisions/s", "to " + strings.TrimPrefix(w.base, "accesslimit "), "p50 µs", "p99 µs", "client CPU µs",
		"server CPU µs", "scripts per decision", "allocs", "bytes", "errors",
	}
	if w.exact {
		before = fmt.Sprintf("The key admits %d calls and then none; \"admitted\" is how many it did, in the worst round.\n\n", w.limit.Max)
		head = append(head, "admitted")
	}
	table := harness.NewTable(head...)
	for _, n := range w.counts(b.settings) {
		for _, name := range names {
			c := cell{w.name, name, n}
			rounds := b.outcomes[c]
			if len(rounds) == 0 {
				continue
			}
			row := []any{
				name, n, b.of(c, perSecond), b.pairs(c, cell{w.name, w.base, n}, perSecond).In("x"), b.median(c, percentile(50)), b.median(c, percentile(99)),
				b.median(c, clientMicros), b.median(c, serverMicros), b.median(c, scripts), b.median(c, mallocs), b.median(c, bytes), errorsOf(rounds, !w.exact),
			}
			if w.exact {
				row = append(row, mostAdmitted(rounds))
			}
			table.Row(row...)
		}
	}
	section(t, onRedisHeading+w.name, before, table)
}

func (b *bench) inProcessText(t *strings.Builder) {
	before := fmt.Sprintf("All cores call. The time is the elapsed time of a call, the CPU time that of all cores. "+
		"The heap is of %s keys, the subjects not counted. Every call is within the limit; "+
		"\"failed\" are the calls on one key that were refused although the limit allows them. "+
		"%q is no limiter: it shows the least that one can cost.\n\n", harness.Number(float64(b.heapKeys)), rivals.Floor)
	table := harness.NewTable("limiter", "ns, one key", "to TokenBucket", "CPU ns, one key", "ns, 100k keys",
		"to TokenBucket", "CPU ns, 100k keys", "allocs", "bytes", "heap bytes per key", "failed")
	for _, r := range rivals.InThisProcess {
		one, all := cell{workload: oneKey, rival: r.Name}, cell{workload: allKeys, rival: r.Name}
		if len(b.outcomes[one]) == 0 {
			continue
		}
		to := func(c cell) string {
			return b.pairs(c, cell{workload: c.workload, rival: rivals.TokenBucket}, nanos).In("x")
		}
		table.Row(r.Name, b.of(one, nanos), to(one), b.median(one, clientNanos), b.of(all, nanos), to(all), b.median(all, clientNanos),
			b.median(all, mallocs), b.median(all, bytes), b.heapBytes[r.Name], errorsOf(b.outcomes[one], false))
	}
	section(t, inProcessHeading, before, table)
	if busy := b.heapBytes[busySlidingWindow]; busy > 0 {
		fmt.Fprintf(t, "SlidingWindow with calls in several parts of its window: %s heap bytes per key.\n\n", harness.Number(busy))
	}
}

// added returns what a middleware adds to its framework's bare handler in each round.
func (r *report) added(framework, name string, n number) []float64 {
	with := harness.Values(r.outcomes[middlewareCell(framework, name)], n)
	without := harness.Values(r.outcomes[middlewareCell(framework, rivals.None)], n)
	for i := range min(len(with), len(without)) {
		with[i] -= without[i]
	}
	return with
}

// addedPairs returns the spread of the ratio of what two middlewares of a framework add.
func (r *report) addedPairs(framework, a, b string) harness.Spread {
	return harness.Pairs(r.added(framework, a, nanos), r.added(framework, b, nanos))
}

func (b *bench) middlewareText(t *strings.Builder) {
	before := "All cores call, from one address. Each is compared with ours that sends the same headers: " +
		"none, X-RateLimit, or by default RateLimit and RateLimit-Policy.\n\n"
	table := harness.NewTable("framework", "limit", "ns", "ns over the bare handler", "to ours, like for like", "CPU ns over it", "allocs over it", "bytes")
	for _, m := range rivals.Middlewares {
		c := middlewareCell(m.Framework, m.Name)
		added := func(n number) harness.Spread { return harness.SpreadOf(b.added(m.Framework, m.Name, n)) }
		switch {
		case len(b.outcomes[c]) == 0:
		case m.Name == rivals.None:
			table.Row(m.Framework, m.Name, b.of(c, nanos), "", "", "", "", b.median(c, bytes))
		default:
			table.Row(m.Framework, m.Name, b.of(c, nanos), added(nanos), b.addedPairs(m.Framework, m.Name, m.Like).In("x"),
				added(clientNanos).Median, max(0, added(mallocs).Median), b.median(c, bytes))
		}
	}
	section(t, middlewareHeading, before, table)
}

func (b *bench) serverTimeText(t *strings.Builder) {
	before := fmt.Sprintf("The time of its main thread for a decision. The scripts are those that the library "+
		"sends for %s existing keys, over %d connections with %d scripts in flight on each.\n\n",
		harness.Number(timedKeys), timedConnections, timedDepth)
	table := harness.NewTable("script", "answer", "µs", "to TokenBucket, allowed", "decisions/s", "scripts per decision", "bytes in", "bytes out")
	for _, s := range b.scripts {
		c := s.cell()
		table.Row(s.rival, s.answer, b.of(c, serverMicros), b.pairs(c, timeOf(rivals.TokenBucket, allowedCall), serverMicros).In("x"),
			b.median(c, perSecond), b.median(c, scripts), b.median(c, bytesIn), b.median(c, bytesOut))
	}
	section(t, "The server's time", before, table)
}

func (b *bench) memoryText(t *strings.Builder) {
	before := fmt.Sprintf("MEMORY USAGE with a subject of %d characters, after one call and after %d that were spread over the window.\n\n",
		harness.KeyLen, busyCalls)
	table := harness.NewTable("limiter", "bytes after 1", fmt.Sprintf("bytes after %d", busyCalls))
	for _, r := range rivals.OnRedis {
		if w, found := b.weights[r.Name]; found {
			table.Row(r.Name, w.cold, w.busy)
		}
	}
	section(t, "Memory of a key in Redis", before, table)
}
