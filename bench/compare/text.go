package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// text returns RESULTS.md. A table without figures is left out.
func (r *results) text() string {
	var t strings.Builder
	r.head(&t)
	r.targetText(&t)
	r.redisText(&t)
	r.localText(&t)
	r.serverText(&t)
	return strings.TrimRight(t.String(), "\n") + "\n"
}

// section writes a table and the text before it, or nothing if the table is empty.
func section(t *strings.Builder, heading, before string, table *harness.Table) {
	if !table.Empty() {
		t.WriteString("## " + heading + "\n\n" + before + table.String() + "\n")
	}
}

func (r *results) head(t *strings.Builder) {
	t.WriteString("# Results\n\nWritten by `" + r.about[0] + "`. [README.md](README.md) says how to read this: ratios count, not figures. " +
		"All are medians; [" + figuresFile + "](" + figuresFile + ") has their confidence intervals, and all further figures.\n\n")
	for _, line := range r.about[1:] {
		t.WriteString("- " + line + "\n")
	}
	t.WriteString("- not measured: " + strings.Join(rivals.Left, "; ") + "\n\n")
}

// targetText lists the targets, those that were missed first.
func (r *results) targetText(t *strings.Builder) {
	fmt.Fprintf(t, "## Targets\n\nOn Redis with %d goroutines, unless the line says otherwise.\n", crowd)
	for _, result := range []string{missed, undecided, met, notMeasured} {
		lines := ""
		for _, target := range r.targets() {
			if target.result() == result {
				lines += "- " + target.String() + "\n"
			}
		}
		if lines != "" {
			t.WriteString("\n" + result + ":\n\n" + lines)
		}
	}
	t.WriteString("\n")
}

// targets returns the targets with the figures of the run.
func (r *results) targets() []target {
	nothing := &bench{report: newReport()}
	all := nothing.targets()
	for i := range all {
		all[i].reached = r.of(cell{workload: targetsPart, rival: all[i].row}, reached)
	}
	return all
}

// column is a column of a table. It holds one figure per limiter.
type column struct {
	head string
	of   func(name string) harness.Spread
}

// table returns a table of the limiters for which any column has a figure.
func (r *results) table(first string, names []string, columns ...column) *harness.Table {
	heads := []string{first}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	table := harness.NewTable(heads...)
	for _, name := range names {
		row, measured := []any{name}, false
		for _, c := range columns {
			figure := harness.Number(c.of(name).Median)
			if figure == "-" {
				figure = "" // it was not measured
			}
			row, measured = append(row, figure), measured || figure != ""
		}
		if measured {
			table.Row(row...)
		}
	}
	return table
}

func (r *results) on(workload string, goroutines int, measure, head string) column {
	return column{head, func(name string) harness.Spread { return r.of(cell{workload, name, goroutines}, measure) }}
}

func (r *results) redisText(t *strings.Builder) {
	section(t, "On Redis", fmt.Sprintf("Decisions a second of %d goroutines, the latency of their calls, and that of one goroutine. "+
		"A used-up key admits %d calls and then none.\n\n", crowd, refused.limit.Max),
		r.table("limiter", contestantNames(),
			r.on(hotKey, crowd, rate, hotKey), r.on(uniformKeys, crowd, rate, uniformKeys), r.on(zipfKeys, crowd, rate, zipfKeys),
			r.on(refusedKey, crowd, rate, refusedKey), r.on(uniformKeys, crowd, p99, p99), r.on(uniformKeys, 1, p50, "alone, "+p50)))
	section(t, "With overrides", "Decisions a second of one goroutine and of 256, beside a limit without overrides.\n\n",
		r.table("limiter", withOverrides,
			r.on(overriddenKey, 1, rate, "1, one key"), r.on(overriddenKey, crowd, rate, "256, one key"),
			r.on(overriddenKeys, 1, rate, "1, 10k keys"), r.on(overriddenKeys, crowd, rate, "256, 10k keys")))
	section(t, "Clusters", "", r.table("cluster", clusterNames, r.on(masters, crowd, rate, rate), r.on(masters, crowd, p99, p99)))
}

func (r *results) localText(t *strings.Builder) {
	var names, limits []string
	for _, rival := range rivals.InThisProcess {
		names = append(names, rival.Name)
	}
	section(t, "In the process", fmt.Sprintf("All cores call. %q is no limiter: it is the least that one can cost.\n\n", rivals.Floor),
		r.table("limiter", append(names, busySlidingWindow),
			r.on(oneKey, 0, elapsed, "ns, one key"), r.on(allKeys, 0, elapsed, "ns, 100k keys"), r.on(allKeys, 0, allocs, allocs), r.on(heapPart, 0, heapBytes, heapBytes)))
	var frameworks []column
	for _, m := range rivals.Middlewares {
		if !slices.Contains(limits, m.Name) {
			limits = append(limits, m.Name)
		}
		if m.Name == rivals.None {
			frameworks = append(frameworks, r.on(m.Framework, 0, addedTime, m.Framework))
		}
	}
	section(t, "Middlewares, counting in the process", "Time that each middleware adds to its handler, in ns, with all cores calling.\n\n", r.table("limit", limits, frameworks...))
}

func (r *results) serverText(t *strings.Builder) {
	var names []string
	for _, rival := range rivals.OnRedis {
		names = append(names, rival.Name)
	}
	time := func(answer string) column {
		return column{"µs, " + answer, func(name string) harness.Spread { return r.of(timeOf(name, answer), serverTime) }}
	}
	section(t, "The server", "The time of its main thread for a decision, and the memory of a key.\n\n",
		r.table("limiter", append(names, serverFloors...), time(allowedCall), time(refusedCall),
			r.on(memoryPart, 0, coldBytes, coldBytes), r.on(memoryPart, 0, busyBytes, busyBytes)))
}
