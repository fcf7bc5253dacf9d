package harness

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// AllowFunc asks a limiter for one permit.
type AllowFunc func(ctx context.Context, subject string) (allowed bool, err error)

// Load describes how a limiter is called: by several goroutines, each in a closed loop.
type Load struct {
	Goroutines int
	Keys       Keys
	Picks      []uint32 // which key is called next; its length is a power of two
	Warm       time.Duration
	Measure    time.Duration
	Every      int // a goroutine times one call in Every, because reading the clock takes time
}

// Outcome is the result of a run of the loop. Everything but Ever covers only the calls that ended
// during the measurement.
type Outcome struct {
	Decisions int64
	Allowed   int64
	Errors    int64
	Ever      int64 // admitted since the first call, including the warm-up
	Took      time.Duration
	Latency   *hdrhistogram.Histogram // in nanoseconds
	Mallocs   uint64
	Bytes     uint64
	ClientCPU time.Duration
	Server    Usage
}

// NewLatency returns an empty histogram of latencies up to a minute, with an error below 1 %.
func NewLatency() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Minute.Nanoseconds(), 2)
}

// The phases of a run. Calls continue through all phases, so neither start-up nor shutdown is
// measured.
const (
	warming = iota
	measuring
	ended
)

// run is a loop in progress. The goroutines share only fields that they read.
type run struct {
	Load
	allow AllowFunc
	phase atomic.Int32
	epoch time.Time
}

// Loop calls a limiter and measures it. If server is not nil, Loop measures the server too.
func Loop(allow AllowFunc, load Load, server *Server) (*Outcome, error) {
	r := &run{Load: load, allow: allow, epoch: time.Now()}
	callers := make([]*caller, load.Goroutines)
	var all sync.WaitGroup
	for i := range callers {
		callers[i] = r.caller(i)
		all.Go(callers[i].work)
	}
	time.Sleep(load.Warm)
	o := &Outcome{Latency: NewLatency()}
	err := o.during(server, func() error {
		r.phase.Store(measuring)
		time.Sleep(load.Measure)
		r.phase.Store(ended)
		return nil
	})
	all.Wait()
	for _, c := range callers {
		o.add(c)
	}
	return o, err
}

// caller is one goroutine of a run. It writes nowhere else and allocates nothing.
type caller struct {
	run       *run
	calls     int
	next      int
	decisions int64
	allowed   int64
	errors    int64
	ever      int64
	latency   *hdrhistogram.Histogram
}

// caller returns goroutine i of the run. The goroutines start counting their calls at different
// numbers, so that some calls are timed even if each goroutine makes only a few.
func (r *run) caller(i int) *caller {
	return &caller{run: r, calls: i, next: i * len(r.Picks) / r.Goroutines, latency: NewLatency()}
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
		allowed, err := r.allow(ctx, subject)
		if allowed && err == nil {
			c.ever++
		}
		switch r.phase.Load() {
		case ended:
			return
		case measuring:
			c.count(allowed, err)
			if timed {
				_ = c.latency.RecordValue((time.Since(r.epoch) - began).Nanoseconds()) // no call takes a minute
			}
		}
	}
}

func (c *caller) count(allowed bool, err error) {
	c.decisions++
	switch {
	case err != nil:
		c.errors++
	case allowed:
		c.allowed++
	}
}

// add adds the counts of a goroutine.
func (o *Outcome) add(c *caller) {
	o.Decisions += c.decisions
	o.Allowed += c.allowed
	o.Errors += c.errors
	o.Ever += c.ever
	o.Latency.Merge(c.latency)
}

// during measures memory and processor time while do runs. If server is not nil, it measures the
// server too.
func (o *Outcome) during(server *Server, do func() error) (err error) {
	var before, after runtime.MemStats
	var served Usage
	if server != nil {
		if served, err = server.Usage(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&before)
	cpu, began := processCPU(), time.Now()
	err = do()
	o.Took, o.ClientCPU = time.Since(began), processCPU()-cpu
	runtime.ReadMemStats(&after)
	o.Mallocs, o.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	if server != nil && err == nil {
		var now Usage
		now, err = server.Usage()
		o.Server = now.Since(served)
	}
	return err
}

// processCPU returns the processor time of this process, in user and system mode.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
