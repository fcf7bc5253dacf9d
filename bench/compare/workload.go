package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// workload is a pattern of calls on Redis.
type workload struct {
	name     string
	limit    rivals.Limit
	all, few []int // numbers of goroutines of a full and of a short run
	keys     int
	picks    func(n int) []uint32
	loaded   bool     // all keys exist before the first run
	exact    bool     // each run uses up its own key, and admitted calls are counted
	every    int      // times one call in this many; 0 means every call
	only     []string // the rivals that take part, unless it is nil
	base     string   // the rival to which the others are compared
}

// The names of the workloads.
const (
	hotKey         = "one hot key"
	uniformKeys    = "100k keys, uniform"
	zipfKeys       = "100k keys, zipf s = 1.1"
	refusedKey     = "a key that is used up"
	overriddenKey  = "one key, with overrides"
	overriddenKeys = "10k keys, with overrides"
	billedKeys     = "10k keys, with bills"
)

// oneOf always picks the same key.
func oneOf(int) []uint32 { return harness.One() }

// hot is one key that all goroutines call, so that they meet on the same counter. Only some calls
// are timed, because reading the clock would take a sixth of a leased call's time.
var hot = workload{
	name: hotKey, limit: rivals.RoomyHot, all: []int{1, 16, 64, 256, 1024}, few: []int{1, 16, 256}, every: 8,
	keys: 1, picks: oneOf, base: rivals.TokenBucket,
}

// uniform is many keys that are called equally often, so that two calls on one key hardly ever
// meet.
var uniform = workload{
	name: uniformKeys, limit: rivals.Roomy, all: []int{1, 16, 64, 256, 1024}, few: []int{1, 16, 256},
	keys: manyKeys, picks: harness.Uniform, loaded: true, base: rivals.TokenBucket,
}

// zipf is many keys, a few of which get most calls, like users, tenants and crawlers of real
// services.
var zipf = workload{
	name: zipfKeys, limit: rivals.Roomy, all: []int{64, 256, 1024}, few: []int{256},
	keys: manyKeys, picks: func(n int) []uint32 { return harness.Zipf(n, 1.1) }, loaded: true, base: rivals.TokenBucket,
}

// refused is a key that admits 1000 calls and then none. It shows the cost of a flood. Each run
// uses up its own key, so admitted calls can be counted exactly, which exposes a limiter that is
// fast because it admits too many. Only some calls are timed, because reading the clock would take
// most of the time.
var refused = workload{
	name: refusedKey, limit: rivals.UsedUp, all: []int{1, 64, 256}, few: []int{256}, exact: true, every: 16,
	keys: full.rounds * 3, picks: oneOf, base: rivals.TokenBucket,
}

var withOverrides = []string{rivals.SlidingWindow, rivals.NoOverride, rivals.Overridden}

// overridden are counters whose subjects may have overrides, compared with a counter without
// overrides.
var overridden = [2]workload{
	{
		name: overriddenKey, limit: rivals.RoomyHot, all: []int{1, 256}, few: []int{1, 256}, every: 8,
		keys: 1, picks: oneOf, only: withOverrides, base: rivals.SlidingWindow,
	},
	{
		name: overriddenKeys, limit: rivals.Roomy, all: []int{1, 256}, few: []int{256},
		keys: 10_000, picks: harness.Uniform, loaded: true, only: withOverrides, base: rivals.SlidingWindow,
	},
}

// billed are calls whose cost is known afterwards: each opens a bill and settles it, which is two calls.
var billed = workload{
	name: billedKeys, limit: rivals.Roomy, all: []int{1, 256}, few: []int{1, 256}, keys: 10_000, picks: harness.Uniform, loaded: true,
	only: []string{rivals.SlidingWindow, rivals.Billed}, base: rivals.SlidingWindow,
}

// together lists the workloads; those in one list share their keys.
var together = [][]workload{{hot}, {uniform, zipf}, {refused}, {overridden[0]}, {overridden[1]}, {billed}}

func (w workload) counts(s settings) []int {
	if s.quick {
		return w.few
	}
	return w.all
}

// has reports whether a contestant takes part in the runs with this many goroutines. A contestant
// that isolates one cost takes part only where that cost matters.
func (w workload) has(contestant string, goroutines int) bool {
	switch contestant {
	case rivals.NoOverride, rivals.Overridden, rivals.Billed:
		return slices.Contains(w.only, contestant)
	case rivals.OneKey:
		return w.loaded && w.only == nil
	case rivals.Here:
		return !w.loaded && w.only == nil
	case rivals.SameScript:
		return goroutines <= 16 && w.only == nil
	case scriptAlone:
		return w.loaded && goroutines == crowd && w.only == nil
	default:
		return w.only == nil || slices.Contains(w.only, contestant)
	}
}

// run is one measurement of each contestant in a round.
type run struct {
	workload
	goroutines int
	picks      []uint32
}

// onRedis measures workloads that share their keys.
func (b *bench) onRedis(same []workload) error {
	var runs []run
	for _, w := range same {
		w.keys = min(w.keys, b.keys)
		picks := w.picks(w.keys)
		for _, n := range w.counts(b.settings) {
			runs = append(runs, run{w, n, picks})
		}
	}
	contestants, err := b.contestants(runs)
	defer closeAll(contestants)
	if err != nil {
		return err
	}
	return b.inRounds(runs, contestants)
}

// inRounds measures the runs in rounds. Within a round, the contestants of a run follow each other
// directly in random order, so that the machine is equally busy for all of them.
func (b *bench) inRounds(runs []run, contestants []contestant) error {
	for round := range b.rounds {
		for _, i := range harness.Shuffled(len(runs)) {
			run := runs[i]
			if run.exact {
				run.picks = []uint32{uint32(round*len(runs) + i)}
			}
			for _, k := range harness.Shuffled(len(contestants)) {
				if err := b.measureRun(run, contestants[k]); err != nil {
					return fmt.Errorf("%s: %w", contestants[k].name, err)
				}
			}
		}
	}
	return nil
}

func (b *bench) measureRun(run run, c contestant) error {
	if !run.has(c.name, run.goroutines) {
		return nil
	}
	outcome, err := c.measure(run)
	b.add(cell{run.name, c.name, run.goroutines}, outcome)
	return err
}

// load returns the calls of a run.
func (b *bench) load(run run, keys harness.Keys) harness.Load {
	warm := b.warm
	if run.exact {
		warm *= 3 // until the key is used up
	}
	return harness.Load{
		Goroutines: run.goroutines, Keys: keys, Picks: run.picks, Warm: warm, Measure: b.measure, Every: max(1, run.every),
	}
}

// patiently repeats a call that got no answer, because a server may be slow on a busy machine and
// that is not what is measured.
func patiently(allow harness.AllowFunc, subject string) (allowed bool, err error) {
	for range 40 {
		if allowed, err = allow(background, subject); err == nil {
			return allowed, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return allowed, err
}
