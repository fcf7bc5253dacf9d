package main

import (
	"fmt"
	"os"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// growth is a row of the section "How it grows".
type growth struct {
	setting, rival string
	perSecond      float64
	p99            time.Duration
	bytes          float64 // of a key
	errors         string
}

const (
	growGoroutines = 256
	growMeasure    = 2 * time.Second
)

// growLimit keeps every state alive until all of them are loaded.
var growLimit = rivals.Limit{Max: 10_000, Window: time.Hour, Permit: 5 * time.Minute}

// growKeys measures with few, many and very many keys in Redis. Loading the last takes so long
// that only our default is measured with them.
func (b *bench) growKeys() error {
	for _, n := range []int{1000, 100_000, 10_000_000} {
		keys := harness.NewKeys("key", n)
		picks := harness.Uniform(n)
		for _, rival := range []string{rivals.SlidingWindow, rivals.TokenBucket} {
			if n > b.manyKeys && rival != rivals.SlidingWindow {
				continue
			}
			bytes, err := b.growStates(rival, n)
			if err != nil {
				return err
			}
			setting := fmt.Sprintf("%d keys in Redis", n)
			if err := b.grow(setting, rival, growLimit, keys, picks, bytes); err != nil {
				return err
			}
		}
	}
	return b.server.Flush()
}

// growStates loads n states and returns the bytes of a key in the server's memory.
func (b *bench) growStates(rival string, n int) (bytes float64, err error) {
	if err := b.server.Flush(); err != nil {
		return 0, err
	}
	empty, err := b.server.Memory()
	if err != nil {
		return 0, err
	}
	if err := b.loadStates(rival, growLimit, b.place(), n); err != nil {
		return 0, err
	}
	if n < b.manyKeys {
		return 0, nil // the server's buffers would be most of it
	}
	full, err := b.server.Memory()
	return float64(full-empty) / float64(n), err
}

// grow measures one row on the servers as they are.
func (b *bench) grow(setting, rival string, limit rivals.Limit, keys harness.Keys, picks []uint32, bytes float64) error {
	limiter, err := rivals.Find(rival).Open(b.place(), limit)
	if err != nil {
		return err
	}
	defer limiter.Close()
	load := harness.Load{
		Goroutines: growGoroutines, Keys: keys, Picks: picks, Warm: b.warm, Measure: growMeasure, Every: 1,
	}
	o, err := harness.Loop(limiter.Allow, load, b.server)
	if err != nil {
		return err
	}
	b.growths = append(b.growths, growth{
		setting, rival, perSecond(o), o.Latency.Percentile(99), bytes, errorsOf([]*harness.Outcome{o}, true),
	})
	return nil
}

// growMax measures limits of several sizes, in a window that turns during the measurement.
func (b *bench) growMax() error {
	keys := harness.NewKeys("key", 50_000)
	picks := harness.Uniform(keys.Len())
	for _, limit := range []int{10, 10_000, 10_000_000} {
		for _, rival := range []string{rivals.TokenBucket, rivals.SlidingWindow} {
			if err := b.server.Flush(); err != nil {
				return err
			}
			setting := fmt.Sprintf("Max %d a second", limit)
			err := b.grow(setting, rival, rivals.Limit{Max: limit, Window: time.Second, Permit: time.Second / time.Duration(limit)}, keys, picks, 0)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// growMasters measures clusters, all on this machine.
func (b *bench) growMasters() error {
	keys := harness.NewKeys("key", b.manyKeys)
	picks := harness.Uniform(keys.Len())
	for _, masters := range []int{1, 3} {
		if err := b.growCluster(masters, keys, picks); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) growCluster(masters int, keys harness.Keys, picks []uint32) error {
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
	alone := b.server
	b.server = cluster
	defer func() { b.server = alone }()
	setting := fmt.Sprintf("a cluster of %d", masters)
	for _, rival := range []string{rivals.TokenBucket, rivals.SlidingWindow, rivals.RedisRate} {
		if err := cluster.Flush(); err != nil {
			return err
		}
		limiter, err := rivals.Find(rival).Open(b.place(), growLimit)
		if err != nil {
			return err
		}
		err = callEach(limiter.Allow, keys)
		limiter.Close()
		if err != nil {
			return err
		}
		if err := b.grow(setting, rival, growLimit, keys, picks, 0); err != nil {
			return err
		}
	}
	return nil
}
