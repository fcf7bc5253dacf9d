package main

import (
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// While a server runs a long script, it answers no other client. So another process reads strings
// during the load of each limiter.

const bystanderGoroutines = 4

// bystanderLoads are the rivals that are called while the other process reads.
var bystanderLoads = []string{rivals.TokenBucket, rivals.OneKey, rivals.RedisRate, rivals.Ulule, rivals.Bare, rivals.Rueidis}

const noLoad = "nothing"

// reads returns the cell of the other process's reads during a load.
func reads(load string) cell { return cell{"GET beside " + uniformKeys, load, bystanderGoroutines, 1} }

// besideReads returns the cell of a load during those reads.
func besideReads(load string) cell { return cell{uniformKeys + " beside GET", load, crowd, 1} }

func (b *bench) bystander() error {
	keys := harness.NewKeys("key", uniform.keys(b.settings))
	if err := b.server.Flush(); err != nil {
		return err
	}
	if err := b.loadStates(rivals.Bare, uniform.limit, b.place(), keys.Len()); err != nil {
		return err
	}
	loads := []contestant{{noLoad, func(r run) (*harness.Outcome, error) { time.Sleep(b.warm + r.measure); return nil, nil }, func() {}}}
	defer func() { closeAll(loads) }()
	for i, name := range bystanderLoads {
		c, err := b.contestant(rivals.Find(name), uniform, b.server, i, keys)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		loads = append(loads, c)
	}
	load := run{uniform, crowd, uniform.picks(keys.Len()), b.processMeasure}
	get := job{rivals.PlainGet.Name, uniformKeys, b.place(), bystanderGoroutines, keys.Len(), b.warm, b.processMeasure}
	for range b.processRounds {
		for _, i := range harness.Shuffled(len(loads)) {
			if err := b.readBeside(loads[i], load, get); err != nil {
				return fmt.Errorf("%s: %w", loads[i].name, err)
			}
		}
	}
	return nil
}

func (b *bench) readBeside(c contestant, load run, get job) error {
	reader, err := startWorker(get)
	if err != nil {
		return err
	}
	defer reader.stop()
	if err := reader.begin(); err != nil {
		return err
	}
	outcome, err := c.measure(load)
	if err != nil {
		return err
	}
	d, err := reader.report()
	if err != nil {
		return err
	}
	read := new(harness.Outcome)
	d.addTo(read)
	b.outcomes[reads(c.name)] = append(b.outcomes[reads(c.name)], read)
	if outcome != nil {
		b.outcomes[besideReads(c.name)] = append(b.outcomes[besideReads(c.name)], outcome)
	}
	return nil
}
