package main

import (
	"fmt"
	"os"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// setting is one of several under which our default is measured in turns. They differ in one way
// only.
type setting struct {
	name   string
	limit  rivals.Limit
	keys   int
	loaded bool // all keys exist before the first run
	server *harness.Server
}

// growLimit keeps every state alive until the last round.
var growLimit = rivals.Limit{Max: 10_000, Window: time.Hour, Permit: 5 * time.Minute}

// growKeys measures few, many and very many keys in Redis.
func (b *bench) growKeys() error {
	var all []setting
	for _, n := range []int{1000, 100_000, 3_000_000} {
		all = append(all, setting{fmt.Sprintf("%d keys in Redis", n), growLimit, n, true, b.server})
	}
	return b.grow(all)
}

// growMax measures limits of several sizes, in a window that turns during the measurement.
func (b *bench) growMax() error {
	var all []setting
	for _, n := range []int{10, 10_000, 10_000_000} {
		limit := rivals.Limit{Max: n, Window: time.Second}
		all = append(all, setting{fmt.Sprintf("Max %d a second", n), limit, 50_000, false, b.server})
	}
	return b.grow(all)
}

// growMasters measures clusters, all on this machine.
func (b *bench) growMasters() error {
	var all []setting
	for _, masters := range []int{1, 3} {
		dir, err := os.MkdirTemp("", "accesslimit-bench")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		cluster, err := harness.StartCluster(masters, dir)
		if err != nil {
			return err
		}
		defer cluster.Stop()
		all = append(all, setting{fmt.Sprintf("a cluster of %d", masters), growLimit, b.manyKeys, true, cluster})
	}
	return b.grow(all)
}

// growCell returns the cell of a setting.
func growCell(setting string) cell { return cell{"how it grows", setting, crowd, 1} }

func (b *bench) grow(settings []setting) error {
	if err := b.server.Flush(); err != nil {
		return err
	}
	contestants, runs := make([]contestant, len(settings)), make([]run, len(settings))
	for i, s := range settings {
		w := workload{name: "how it grows", limit: s.limit, loaded: s.loaded}
		keys := harness.NewKeys("key", s.keys)
		c, err := b.contestant(rivals.Find(rivals.SlidingWindow), w, s.server, i, keys)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		defer c.close()
		contestants[i], runs[i] = c, run{w, crowd, harness.Uniform(s.keys), b.processMeasure}
	}
	for range b.processRounds {
		for _, i := range harness.Shuffled(len(settings)) {
			outcome, err := contestants[i].measure(runs[i])
			if err != nil {
				return fmt.Errorf("%s: %w", settings[i].name, err)
			}
			c := growCell(settings[i].name)
			b.outcomes[c] = append(b.outcomes[c], outcome)
		}
	}
	for _, s := range settings {
		b.growths = append(b.growths, growth{s.name, settings[0].name})
	}
	return nil
}

// growth is a row of the section "How it grows", with the setting that it is compared with.
type growth struct{ setting, first string }
