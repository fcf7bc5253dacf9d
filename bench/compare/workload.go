package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// workload is a kind of calls on Redis. To add one, write a file like hot.go and add it to the list.
type workload struct {
	name     string
	limit    rivals.Limit
	all, few []int // goroutines of a full and of a short run
	keys     func(settings) int
	picks    func(n int) []uint32
	ceiling  bool // redis-benchmark runs the same script beside it
	exact    bool // each run uses up a key of its own, and what it admits is counted
	every    int  // a latency is taken of every so manieth call; 0: of each
}

var workloads = []workload{hot, uniform, zipf, refused}

// together are the workloads that meet the same keys: a visit measures all of one line.
var together = [][]workload{{hot}, {uniform, zipf}, {refused}}

// workloadNamed is the workload of a name; it panics for none, which is a mistake in this program.
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

// cell is what one figure is of.
type cell struct {
	workload, rival       string
	goroutines, processes int
}

// onRedis measures all rivals under workloads of the same keys. A round visits each rival once, in random order.
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

// visitRun is what is measured in a visit.
type visitRun struct {
	workload
	goroutines int
	picks      []uint32
}

// visit measures a rival under all of some runs, in random order, on a server that has a live state of every key and nothing else.
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

// patiently asks again when there was no answer: on a busy machine a server may be late, and this is not what is measured.
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

// callEach calls every key once. All must be admitted.
func callEach(allow harness.AllowFunc, keys harness.Keys) error {
	var group errgroup.Group
	for g := range min(warmers, keys.Len()) {
		group.Go(func() error {
			for i := g; i < keys.Len(); i += warmers {
				answer, err := patiently(allow, keys.At(i))
				if err != nil {
					return err
				}
				if !answer.Allowed {
					return errors.New("the first call on a key was refused")
				}
			}
			return nil
		})
	}
	return group.Wait()
}
