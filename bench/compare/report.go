package main

import (
	"math"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
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

// number returns a number of an outcome that the tables show.
type number = func(*harness.Outcome) float64

// perSecond returns the decisions in a second. A call that failed is no decision.
func perSecond(o *harness.Outcome) float64 { return float64(o.Decisions-o.Errors) / o.Took.Seconds() }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// percentile returns a latency in microseconds, or NaN if no call was timed.
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

// admitted returns the number of calls admitted since the first one, including the warm-up.
func admitted(o *harness.Outcome) float64 { return float64(o.Ever) }

// of returns the spread of one number over the rounds of a cell.
func (r *report) of(c cell, n number) harness.Spread {
	return harness.SpreadOf(harness.Values(r.outcomes[c], n))
}

// pairs returns the spread of the ratios of a number in cell a to the same number in cell b, one
// ratio for each round.
func (r *report) pairs(a, b cell, n number) harness.Spread {
	return harness.Pairs(harness.Values(r.outcomes[a], n), harness.Values(r.outcomes[b], n))
}

// middlewareCell returns the cell of a limit around a handler.
func middlewareCell(framework, name string) cell { return cell{workload: framework, rival: name} }

// bytesRatio returns the ratio of two figures of memory, or NaN if one was not measured.
func bytesRatio(a, b float64) harness.Spread {
	if a == 0 {
		return single(math.NaN())
	}
	return single(harness.Ratio(a, b))
}

// share returns what percentage of the calls of all rounds of a cell are counted by of, or NaN if
// there were no calls.
func (r *report) share(c cell, of func(*harness.Outcome) int64) harness.Spread {
	var some, all int64
	for _, o := range r.outcomes[c] {
		some, all = some+of(o), all+o.Decisions
	}
	return single(100 * harness.Ratio(float64(some), float64(all)))
}

func failed(o *harness.Outcome) int64       { return o.Errors }
func refusedCalls(o *harness.Outcome) int64 { return o.Decisions - o.Errors - o.Allowed }

// single returns the spread of a number that was taken once.
func single(v float64) harness.Spread { return harness.Spread{Median: v, Low: v, High: v} }

// mostAdmitted returns how many calls a used-up key admitted in the worst round, or NaN if there
// was no round.
func mostAdmitted(rounds []*harness.Outcome) float64 {
	if len(rounds) == 0 {
		return math.NaN()
	}
	return slices.Max(harness.Values(rounds, admitted))
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
