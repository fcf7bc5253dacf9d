package harness

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Answer is a limiter's answer to one call.
type Answer struct {
	Allowed bool
	Source  string // what decided, if the limiter says so
}

// AllowFunc asks a limiter for one permit.
type AllowFunc func(ctx context.Context, subject string) (Answer, error)

// Load describes how a limiter is called: by several goroutines, each in a closed loop.
type Load struct {
	Goroutines int
	Keys       Keys
	Picks      []uint32 // which key is called next; its length is a power of two
	Warm       time.Duration
	Measure    time.Duration
	Every      int // a latency is taken of every so manieth call of a goroutine, so that the clock does not slow down fast ones
}

// Meter reads a server's Usage. It may be nil.
type Meter interface{ Usage() (Usage, error) }

// Usage is what a server has spent since it started.
type Usage struct {
	CPU     time.Duration
	Scripts int64 // EVALSHA and EVAL that it was asked for
	In, Out int64 // bytes on the network
}

// Since returns what was spent since before.
func (u Usage) Since(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.Scripts - before.Scripts, u.In - before.In, u.Out - before.Out}
}

// Outcome is the result of a run of the loop. Everything but Ever covers only the calls that ended
// during the measurement.
type Outcome struct {
	Decisions int64
	Allowed   int64
	Errors    int64
	Ever      int64            // admitted since the first call, warm-up and all
	Sources   map[string]int64 // number of decisions by Answer.Source
	Took      time.Duration
	Latency   Histogram
	Mallocs   uint64
	Bytes     uint64
	ClientCPU time.Duration
	Server    Usage
	FirstErr  string
}

// The phases of a run. The calls go on through all of them, so neither the start nor the end is
// measured.
const (
	warming = iota
	measuring
	ended
)

// run is a loop under way. The goroutines share only fields that they read.
type run struct {
	Load
	allow AllowFunc
	phase atomic.Int32
	epoch time.Time
}

// Loop calls a limiter and measures it.
func Loop(allow AllowFunc, load Load, meter Meter) (*Outcome, error) {
	r := &run{Load: load, allow: allow, epoch: time.Now()}
	callers := make([]*caller, load.Goroutines)
	var all sync.WaitGroup
	for i := range callers {
		callers[i] = r.caller(i)
		all.Go(callers[i].work)
	}
	time.Sleep(load.Warm)
	before, err := readings(meter)
	began := time.Now()
	r.phase.Store(measuring)
	time.Sleep(load.Measure)
	r.phase.Store(ended)
	took := time.Since(began)
	after, failed := readings(meter)
	all.Wait()
	o := &Outcome{Took: took, Sources: make(map[string]int64)}
	o.between(before, after)
	for _, c := range callers {
		o.add(c)
	}
	if err == nil {
		err = failed
	}
	return o, err
}

// caller is the part of one goroutine, which writes nowhere else and allocates nothing.
type caller struct {
	run       *run
	calls     int
	next      int
	decisions int64
	allowed   int64
	errors    int64
	ever      int64
	sources   [maxSources]sourceCount
	latency   Histogram
	firstErr  error
}

// caller returns goroutine i of the run. Each goroutine begins to count its calls at another
// number, so that some calls are timed even if each goroutine makes only a few.
func (r *run) caller(i int) *caller {
	return &caller{run: r, calls: i, next: i * len(r.Picks) / r.Goroutines}
}

const maxSources = 4

type sourceCount struct {
	source string
	n      int64
}

func (c *caller) work() {
	ctx, r, mask := context.Background(), c.run, len(c.run.Picks)-1
	for ; ; c.calls++ {
		subject := r.Keys.At(int(r.Picks[c.next&mask]))
		c.next++
		var began time.Duration
		timed := c.calls%r.Every == 0
		if timed {
			began = time.Since(r.epoch)
		}
		answer, err := r.allow(ctx, subject)
		if answer.Allowed && err == nil {
			c.ever++
		}
		switch r.phase.Load() {
		case ended:
			return
		case measuring:
			c.count(answer, err)
			if timed {
				c.latency.Add(time.Since(r.epoch) - began)
			}
		}
	}
}

func (c *caller) count(answer Answer, err error) {
	c.decisions++
	switch {
	case err != nil:
		c.errors++
		if c.firstErr == nil {
			c.firstErr = err
		}
		return
	case answer.Allowed:
		c.allowed++
	}
	for i := range c.sources {
		if s := &c.sources[i]; s.n == 0 || s.source == answer.Source {
			s.source = answer.Source
			s.n++
			return
		}
	}
}

// add adds the counts of a goroutine.
func (o *Outcome) add(c *caller) {
	o.Decisions += c.decisions
	o.Allowed += c.allowed
	o.Errors += c.errors
	o.Ever += c.ever
	o.Latency.Merge(&c.latency)
	for _, s := range c.sources {
		if s.n > 0 {
			o.Sources[s.source] += s.n
		}
	}
	if o.FirstErr == "" && c.firstErr != nil {
		o.FirstErr = c.firstErr.Error()
	}
}

// reading holds the figures that are read before and after the measurement.
type reading struct {
	memory runtime.MemStats
	cpu    time.Duration
	server Usage
}

func readings(meter Meter) (r reading, err error) {
	if meter != nil {
		r.server, err = meter.Usage()
	}
	runtime.ReadMemStats(&r.memory)
	r.cpu = CPU()
	return r, err
}

func (o *Outcome) between(before, after reading) {
	o.Mallocs = after.memory.Mallocs - before.memory.Mallocs
	o.Bytes = after.memory.TotalAlloc - before.memory.TotalAlloc
	o.ClientCPU = after.cpu - before.cpu
	o.Server = after.server.Since(before.server)
}
