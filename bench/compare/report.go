package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// cell identifies one figure.
type cell struct {
	workload, rival string
	goroutines      int // 0 if all cores call
}

// report holds everything that was measured.
type report struct {
	outcomes  map[cell][]*harness.Outcome
	heapBytes map[string]float64
	weights   map[string]weight
	scripts   []script
}

func newReport() report {
	return report{outcomes: make(map[cell][]*harness.Outcome), heapBytes: make(map[string]float64), weights: make(map[string]weight)}
}

// add adds the outcome of a round.
func (r *report) add(c cell, o *harness.Outcome) { r.outcomes[c] = append(r.outcomes[c], o) }

// number is a number that the tables show of an outcome.
type number = func(*harness.Outcome) float64

// perSecond returns the decisions in a second. A call that failed is no decision.
func perSecond(o *harness.Outcome) float64 { return float64(o.Decisions-o.Errors) / o.Took.Seconds() }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// percentile returns a latency in microseconds, or NaN if none was taken.
func percentile(p float64) number {
	return func(o *harness.Outcome) float64 {
		if o.Latency.TotalCount() == 0 {
			return math.NaN()
		}
		return float64(o.Latency.ValueAtPercentile(p)) / 1000
	}
}

// These functions return numbers per decision.

func each(n float64, o *harness.Outcome) float64 { return harness.Ratio(n, float64(o.Decisions)) }

func nanos(o *harness.Outcome) float64        { return each(float64(o.Took.Nanoseconds()), o) }
func clientMicros(o *harness.Outcome) float64 { return each(micros(o.ClientCPU), o) }
func clientNanos(o *harness.Outcome) float64  { return 1000 * clientMicros(o) }
func serverMicros(o *harness.Outcome) float64 { return each(micros(o.Server.CPU), o) }
func scripts(o *harness.Outcome) float64      { return each(float64(o.Server.Scripts), o) }
func mallocs(o *harness.Outcome) float64      { return each(float64(o.Mallocs), o) }
func bytes(o *harness.Outcome) float64        { return each(float64(o.Bytes), o) }
func bytesIn(o *harness.Outcome) float64      { return each(float64(o.Server.In), o) }
func bytesOut(o *harness.Outcome) float64     { return each(float64(o.Server.Out), o) }

// perCPU returns the decisions in a second of processor time, of client and server together.
func perCPU(o *harness.Outcome) float64 {
	return float64(o.Decisions-o.Errors) / (o.ClientCPU + o.Server.CPU).Seconds()
}

// admitted returns the calls that were ever admitted.
func admitted(o *harness.Outcome) float64 { return float64(o.Ever) }

// of returns the spread of one number over the rounds of a cell.
func (r *report) of(c cell, n number) harness.Spread {
	return harness.SpreadOf(harness.Values(r.outcomes[c], n))
}

// median returns the median of one number over the rounds of a cell.
func (r *report) median(c cell, n number) float64 { return r.of(c, n).Median }

// pairs returns the spread of the ratio of a number in cell a to that in cell b, taken within each
// round.
func (r *report) pairs(a, b cell, n number) harness.Spread {
	return harness.Pairs(harness.Values(r.outcomes[a], n), harness.Values(r.outcomes[b], n))
}

// middlewareCell returns the cell of a limit around a handler.
func middlewareCell(framework, name string) cell { return cell{workload: framework, rival: name} }

// bytesRatio returns the ratio of two figures of memory, or NaN if one was not measured.
func bytesRatio(a, b float64) harness.Spread {
	ratio := harness.Ratio(a, b)
	if a == 0 {
		ratio = math.NaN()
	}
	return harness.Spread{Median: ratio, Low: ratio, High: ratio}
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
	return slices.Max(harness.Values(rounds, admitted))
}
