package main

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// workload is a pattern of calls on Redis. To add one, write a file like hot.go and add it to
// the list.
type workload struct {
	name     string
	limit    rivals.Limit
	all, few []int // numbers of goroutines of a full and of a short run
	keys     func(settings) int
	picks    func(n int) []uint32
	loaded   bool // there are many keys, and all exist before the first run
	exact    bool // each run uses up its own key, and admitted calls are counted
	every    int  // one call in so many is timed; 0 means each
}

var workloads = []workload{hot, uniform, zipf, refused}

// together lists the workloads that share their keys.
var together = [][]workload{{hot}, {uniform, zipf}, {refused}}

// workloadNamed returns the workload with a name. It panics if there is none, which is a mistake
// in this program.
func workloadNamed(name string) workload {
	for _, w := range workloads {
		if w.name == name {
			return w
		}
	}
	panic("compare: no workload " + name)
}

func (w workload) counts(s settings) []int {
	if s.quick {
		return w.few
	}
	return w.all
}

// cell identifies one figure.
type cell struct {
	workload, rival       string
	goroutines, processes int
}

// run is one measurement of each contestant in a round.
type run struct {
	workload
	goroutines int
	picks      []uint32
	measure    time.Duration
}

// has reports whether a contestant takes part in a run. A contestant that shows the cost of one
// thing takes part only in the runs where that thing matters.
func (r run) has(contestant string) bool {
	switch contestant {
	case rivals.OneKey:
		return r.loaded
	case rivals.OneKeyWindow:
		return false // it is measured only for the server's time
	case rivals.SameScript:
		return r.goroutines <= 16
	case scriptAlone:
		return r.loaded && r.goroutines == crowd
	default:
		return true
	}
}

func (b *bench) runsOf(same []workload, keys int) (runs []run) {
	for _, w := range same {
		picks := harness.One()
		if w.picks != nil {
			picks = w.picks(keys)
		}
		for _, n := range w.counts(b.settings) {
			runs = append(runs, run{w, n, picks, b.measure})
		}
	}
	return runs
}

// onRedis measures workloads that share their keys. Within a round, the contestants of a run follow
// one another directly, in random order, so that the machine is equally busy for both of a pair.
func (b *bench) onRedis(same []workload) error {
	keys := harness.NewKeys("key", same[0].keys(b.settings))
	runs := b.runsOf(same, keys.Len())
	contestants, err := b.contestants(runs, keys)
	defer closeAll(contestants)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		for _, i := range harness.Shuffled(len(runs)) {
			run := runs[i]
			if run.exact {
				run.picks = []uint32{uint32(round*len(runs) + i)}
			}
			if err := b.measureRun(run, contestants); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) measureRun(run run, contestants []contestant) error {
	for _, k := range harness.Shuffled(len(contestants)) {
		name := contestants[k].name
		if !run.has(name) {
			continue
		}
		outcome, err := contestants[k].measure(run)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c := cell{run.name, name, run.goroutines, 1}
		b.outcomes[c] = append(b.outcomes[c], outcome)
	}
	return nil
}

// load returns the calls of a run.
func (b *bench) load(run run, keys harness.Keys) harness.Load {
	warm := b.warm
	if run.exact {
		warm *= 3 // until the key is used up
	}
	return harness.Load{
		Goroutines: run.goroutines, Keys: keys, Picks: run.picks, Warm: warm, Measure: run.measure, Every: max(1, run.every),
	}
}

// patiently repeats a call that got no answer: a server may be late on a busy machine, which is
// not what is measured.
func patiently(allow harness.AllowFunc, subject string) (answer harness.Answer, err error) {
	for range 40 {
		if answer, err = allow(background, subject); err == nil {
			return answer, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return answer, err
}
