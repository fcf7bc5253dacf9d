package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

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
	ceiling  bool // redis-benchmark runs the same script beside it
	exact    bool // each run uses up its own key, and admitted calls are counted
	every    int  // one call in so many is timed; 0 means each
}

var workloads = []workload{hot, uniform, zipf, refused}

// together lists the workloads that share their keys: a visit measures all of one line.
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

// onRedis measures all rivals under workloads that share their keys. A round visits each rival
// once, in random order.
func (b *bench) onRedis(same []workload) error {
	keys := harness.NewKeys("key", same[0].keys(b.settings))
	var runs []visitRun
	for _, w := range same {
		picks := harness.One()
		if w.picks != nil {
			picks = w.picks(keys.Len())
		}
		for _, n := range w.counts(b.settings) {
			runs = append(runs, visitRun{w, n, picks})
		}
	}
	for range b.rounds {
		for _, i := range harness.Shuffled(len(rivals.OnRedis) + 1) {
			var err error
			switch {
			case i < len(rivals.OnRedis):
				err = b.visit(rivals.OnRedis[i], keys, runs)
			case same[0].ceiling:
				err = b.ceilingOf(same[0], keys)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// visitRun is one measurement of a visit.
type visitRun struct {
	workload
	goroutines int
	picks      []uint32
}

// visit measures a rival in several runs, in random order, on a server that has a live state of
// every key and nothing else.
func (b *bench) visit(r rivals.Redis, keys harness.Keys, runs []visitRun) error {
	if runs[0].exact {
		if err := b.server.Flush(); err != nil {
			return err
		}
	} else if _, err := b.loadStates(r.Name, runs[0].limit, keys.Len()); err != nil {
		return err
	}
	limiter, err := r.Open(b.place(), runs[0].limit)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	defer limiter.Close()
	for _, i := range harness.Shuffled(len(runs)) {
		run := runs[i]
		if run.exact {
			run.picks = []uint32{uint32(i)}
		}
		load := harness.Load{
			Goroutines: run.goroutines, Keys: keys, Picks: run.picks, Warm: b.warm, Measure: b.measure, Every: max(1, run.every),
		}
		outcome, err := harness.Loop(limiter.Allow, load, b.server)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		c := cell{run.name, r.Name, run.goroutines, 1}
		b.outcomes[c] = append(b.outcomes[c], outcome)
	}
	return nil
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

// warmers is how many goroutines make the first call on every key.
const warmers = 128

// callEach calls every key once. All calls must be admitted.
func callEach(allow harness.AllowFunc, keys harness.Keys) error {
	return forEachKey(keys, func(subject string) error {
		answer, err := patiently(allow, subject)
		if err == nil && !answer.Allowed {
			err = errors.New("the first call on a key was refused")
		}
		return err
	})
}

// forEachKey runs call for every key, from several goroutines.
func forEachKey(keys harness.Keys, call func(subject string) error) error {
	var group errgroup.Group
	for g := range min(warmers, keys.Len()) {
		group.Go(func() error {
			for i := g; i < keys.Len(); i += warmers {
				if err := call(keys.At(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
