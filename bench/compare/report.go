package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// report holds everything that was measured.
type report struct {
	outcomes  map[cell][]*harness.Outcome
	local     map[cell][]local
	heapBytes map[string]float64
	busyHeap  float64 // of our SlidingWindow, after several calls; may be not a number
	costs     []*cost
	weights   map[string]weight
	growths   []growth
}

func newReport() report {
	return report{
		outcomes: make(map[cell][]*harness.Outcome), local: make(map[cell][]local),
		heapBytes: make(map[string]float64), busyHeap: math.NaN(), weights: make(map[string]weight),
	}
}

// The numbers that tables show of an outcome.

func perSecond(o *harness.Outcome) float64 { return float64(o.Decisions-o.Errors) / o.Took.Seconds() }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// percentile returns a latency in microseconds, or not a number if none was taken.
func percentile(p float64) func(*harness.Outcome) float64 {
	return func(o *harness.Outcome) float64 {
		if d := o.Latency.Percentile(p); d > 0 {
			return micros(d)
		}
		return math.NaN()
	}
}

// These functions return numbers per decision.

func each(n float64, o *harness.Outcome) float64 { return harness.Ratio(n, float64(o.Decisions)) }

func clientMicros(o *harness.Outcome) float64 { return each(micros(o.ClientCPU), o) }
func serverMicros(o *harness.Outcome) float64 { return each(micros(o.Server.CPU), o) }
func scripts(o *harness.Outcome) float64      { return each(float64(o.Server.Scripts), o) }
func mallocs(o *harness.Outcome) float64      { return each(float64(o.Mallocs), o) }
func bytes(o *harness.Outcome) float64        { return each(float64(o.Bytes), o) }

// of returns the spread of one number over the rounds of a cell.
func (r *report) of(c cell, number func(*harness.Outcome) float64) harness.Spread {
	return harness.SpreadBy(r.outcomes[c], number)
}

// pairs returns the spread of the ratio of a number in cell a to that in cell b, taken within each
// round.
func (r *report) pairs(a, b cell, number func(*harness.Outcome) float64) harness.Spread {
	return harness.Pairs(harness.Values(r.outcomes[a], number), harness.Values(r.outcomes[b], number))
}

// toOurs returns how many decisions a cell makes for each one of our TokenBucket.
func (r *report) toOurs(c cell) harness.Spread {
	ours := c
	ours.rival = rivals.TokenBucket
	return r.pairs(c, ours, perSecond)
}

// speed returns the decisions per second of one process. A call that failed is no decision.
func (r *report) speed(workload, rival string, goroutines int) harness.Spread {
	return r.of(cell{workload, rival, goroutines, 1}, perSecond)
}

// heapOf returns the bytes that a limiter in the process keeps for a key, or not a number if
// they were not measured.
func (r *report) heapOf(rival string) float64 {
	if bytes, found := r.heapBytes[rival]; found {
		return bytes
	}
	return math.NaN()
}

// weightOf returns the memory of a rival's key in Redis, or not a number if it was not measured.
func (r *report) weightOf(rival string) weight {
	if w, found := r.weights[rival]; found {
		return w
	}
	return weight{math.NaN(), math.NaN()}
}

// part writes a table and the text before it, or nothing if the table is empty.
func part(t *strings.Builder, before string, table *harness.Table) {
	if !table.Empty() {
		t.WriteString(before + table.String() + "\n")
	}
}

// text returns RESULTS.md.
func (b *bench) text(redisVersion string) string {
	var t strings.Builder
	b.head(&t, redisVersion)
	t.WriteString("## Targets\n\n" + b.targetTable().String() + "\n")
	for _, w := range workloads {
		b.onRedisText(&t, w)
	}
	b.processText(&t)
	b.bystanderText(&t)
	b.localText(&t)
	b.middlewareText(&t)
	b.costText(&t)
	b.memoryText(&t)
	b.growthText(&t)
	b.fleetText(&t)
	return strings.TrimRight(t.String(), "\n") + "\n"
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

func (b *bench) onRedisText(t *strings.Builder, w workload) {
	before := fmt.Sprintf("## %s%s\n\n", onRedisHeading, w.name)
	if w.exact {
		before += fmt.Sprintf("The key admits %d calls and then none; \"admitted\" is how many it did, in the worst round.\n\n", w.limit.Max)
	}
	head := []string{
		"limiter", "goroutines", "decisions/s", "to TokenBucket", "p50 µs", "p99 µs", "client CPU µs", "server CPU µs",
		"scripts per decision", "allocs", "bytes", "errors",
	}
	if w.exact {
		head = append(head, "admitted", "answered by")
	}
	table := harness.NewTable(head...)
	for _, n := range w.counts(b.settings) {
		for _, name := range contestantNames() {
			c := cell{w.name, name, n, 1}
			if len(b.outcomes[c]) > 0 {
				b.outcomeRow(table, w, c)
			}
		}
	}
	part(t, before, table)
}

func (b *bench) outcomeRow(table *harness.Table, w workload, c cell) {
	rounds := b.outcomes[c]
	number := func(f func(*harness.Outcome) float64) float64 { return b.of(c, f).Median }
	row := []any{
		c.rival, c.goroutines, b.of(c, perSecond), b.toOurs(c).In("x"), number(percentile(50)), number(percentile(99)),
		number(clientMicros), number(serverMicros), number(scripts), number(mallocs), number(bytes), errorsOf(rounds, !w.exact),
	}
	if w.exact {
		row = append(row, mostAdmitted(rounds), answeredBy(rounds))
	}
	table.Row(row...)
}

// errorsOf returns the share of calls that failed and, where all should have been admitted, the
// share of calls that were refused.
func errorsOf(rounds []*harness.Outcome, allAdmitted bool) string {
	var decisions, errors, refused int64
	for _, o := range rounds {
		decisions, errors, refused = decisions+o.Decisions, errors+o.Errors, refused+o.Decisions-o.Errors-o.Allowed
	}
	share := func(n int64) string { return fmt.Sprintf("%.2g %%", 100*harness.Ratio(float64(n), float64(decisions))) }
	switch {
	case decisions == 0:
		return "-"
	case refused > 0 && allAdmitted:
		return share(errors) + ", " + share(refused) + " refused"
	case errors > 0:
		return share(errors)
	default:
		return "0"
	}
}

// mostAdmitted returns how many calls a used-up key admitted in the worst round, or NaN if there
// was no round.
func mostAdmitted(rounds []*harness.Outcome) float64 {
	if len(rounds) == 0 {
		return math.NaN()
	}
	return slices.Max(harness.Values(rounds, func(o *harness.Outcome) float64 { return float64(o.Ever) }))
}

// answeredBy returns the sources of the decisions, if the limiter names them.
func answeredBy(rounds []*harness.Outcome) string {
	var all int64
	by := make(map[string]int64)
	for _, o := range rounds {
		for source, n := range o.Sources {
			by[source], all = by[source]+n, all+n
		}
	}
	var parts []string
	for source, n := range by {
		if source != "" {
			parts = append(parts, fmt.Sprintf("%s %.3g %%", source, 100*float64(n)/float64(all)))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
