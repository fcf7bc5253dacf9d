package faults_test

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const manyKeysFault = "10 million distinct keys in Redis"

// Every key is gone after its time, however many there are.
func TestManyKeys(t *testing.T) {
	server, keys := redistest.Start(t), shortOr(20_000, 10_000_000)
	s := limited(t, server, core.Options{Timeout: patience})
	limit := core.Limit{Max: 10, Window: shortOr(time.Second, 90*time.Second)}
	counter := s.limiter.MustCounter("many", limit)
	empty := sizeOf(t, s.client)
	var (
		next  atomic.Int64
		begin = time.Now()
	)
	together(256, func(int) {
		for n := next.Add(1); n <= int64(keys); n = next.Add(1) {
			d, err := counter.Allow(context.Background(), "user:"+strconv.FormatInt(1e14+n, 10))
			if err != nil || !d.Allowed {
				t.Errorf("%+v, %v; want a new caller allowed", d, err)
				return
			}
		}
	})
	took := time.Since(begin)
	full := sizeOf(t, s.client)
	if full.keys == 0 {
		t.Fatal("no key is left to be measured")
	}
	waited := time.Now()
	for full.keys > 0 && sizeOf(t, s.client).keys > 0 {
		if time.Since(waited) > 2*limit.Window+patience { // Redis removes them gradually
			t.Fatalf("%d keys are left after two windows", sizeOf(t, s.client).keys)
		}
		time.Sleep(10 * time.Millisecond)
	}
	gone := time.Since(waited)
	report(t, manyKeysFault, "%.0f calls a second; %d B for a key of 20 characters, %.0f MB for the %d that lived at once; "+
		"all gone %.1f windows after the last", float64(keys)/took.Seconds(),
		(full.memory-empty.memory)/full.keys, float64(full.memory)/1e6, full.keys, gone.Seconds()/limit.Window.Seconds())
}

// size is the number of keys in a server, and their memory.
type size struct{ keys, memory int64 }

func sizeOf(t *testing.T, client *redis.Client) size {
	t.Helper()
	keys, err := client.DBSize(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	keys -= client.Exists(context.Background(), "accesslimit:{%mark0}:mk1").Val() // it stays
	info, err := client.InfoMap(context.Background(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	memory, err := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return size{keys, memory}
}

const floodOfKeys = "10 million distinct keys in one minute, in process"

// heldBy returns the bound on memory: 96 bytes for each key, a tenth more, and the Limiter's own
// memory.
func heldBy(keys int) int { return keys*96*11/10 + 1<<20 }

// TestFloodOfKeys floods a Limiter in this process with new callers. Every other one calls twice in
// a row, and so looks busy. Meanwhile a few callers who have used up their limit go on calling. The
// flood must not give them a fresh counter.
func TestFloodOfKeys(t *testing.T) {
	keys, kept, within := 60_000, 25_000, time.Duration(0)
	options := core.Options{Logger: slog.New(slog.DiscardHandler), MaxKeys: kept}
	if long() {
		keys, kept, within = 10_000_000, 250_000, time.Minute
		options.MaxKeys = 0 // the default
	}
	f := newFlood(keys, within)
	before := heap()
	limiter := limitertest.New(t, options)
	f.callers = limiter.MustCounter("flood", core.PerHour(busyMax))
	for i, limit := range busyLimits {
		f.busy[i].counter = limiter.MustCounter("busy", limit)
	}
	f.started = time.Now()
	var callers sync.WaitGroup
	for i := range floods {
		callers.Go(func() { f.pour(t, i) })
	}
	callers.Wait()
	took, held := time.Since(f.started), heap()-before
	for i := range f.busy {
		if f.busy[i].admitted.Load() != busyMax {
			t.Errorf("a busy caller (%v) was let in %d times of %d, want %d", busyLimits[i].Algorithm, f.busy[i].admitted.Load(), f.busy[i].asked.Load(), busyMax)
		}
	}
	if held > heldBy(kept) {
		t.Errorf("%d keys hold %.1f MB of heap, want at most %.1f MB", keys, mega(held), mega(heldBy(kept)))
	}
	stats := limiter.Stats()
	if stats.Keys > kept || stats.Evictions == 0 {
		t.Errorf("%d keys are kept, want at most %d, and %d were evicted", stats.Keys, kept, stats.Evictions)
	}
	report(t, floodOfKeys, "%d keys in %.0f s: %d are kept, in %.1f MB of heap (bound %.1f MB); p99 of a call %v; each of %d busy callers let in %d times "+
		"in some %d calls, its limit being %d", keys, took.Seconds(), stats.Keys, mega(held), mega(heldBy(kept)), f.took.percentile(99), len(f.busy),
		busyMax, f.busy[0].asked.Load(), busyMax)
}

const (
	floods     = 2   // goroutines
	busyEvery  = 500 // one call in 500 is a busy caller's
	busyMax    = 5
	timedEvery = 16 // one call in 16 of a goroutine is timed
)

// busyLimits are the limits of the busy callers.
var busyLimits = [...]core.Limit{
	core.PerHour(busyMax), core.PerHour(busyMax).Bucket(busyMax), core.PerHour(busyMax).Fixed(),
}

// flood is many new callers, and a few busy ones.
type flood struct {
	callers core.Counter // of the new ones
	keys    int
	within  time.Duration // the calls are spread over this time; 0: as fast as possible
	started time.Time
	took    waits
	busy    [len(busyLimits)]struct {
		counter         core.Counter
		asked, admitted atomic.Int64
	}
}

// newFlood returns a flood with room for the times of its calls, so that they do not count as growth
// of the heap.
func newFlood(keys int, within time.Duration) *flood {
	return &flood{keys: keys, within: within, took: waits{all: make([]time.Duration, 0, 2*keys/timedEvery)}}
}

// pour makes the calls of one goroutine.
func (f *flood) pour(t *testing.T, which int) {
	calls := 0
	for i := which; i < f.keys; i += floods {
		subject := "caller:" + strconv.Itoa(i)
		for range 1 + i/floods%2 {
			began := time.Now()
			d, err := f.callers.Allow(context.Background(), subject)
			if calls++; calls%timedEvery == 0 {
				f.took.add(time.Since(began))
			}
			if err != nil || !d.Allowed {
				t.Errorf("a new caller is refused: %+v, %v", d, err)
				return
			}
		}
		if i%busyEvery < floods {
			f.ask(t, i/busyEvery%len(f.busy))
			time.Sleep(time.Until(f.started.Add(f.within * time.Duration(i) / time.Duration(f.keys))))
		}
	}
}

// ask is a busy caller's call.
func (f *flood) ask(t *testing.T, which int) {
	d, err := f.busy[which].counter.Allow(context.Background(), "caller:busy")
	if err != nil {
		t.Error(err)
	}
	f.busy[which].asked.Add(1)
	if d.Allowed {
		f.busy[which].admitted.Add(1)
	}
}

func mega(bytes int) float64 { return float64(bytes) / (1 << 20) }

// heap returns the number of live bytes on the heap.
func heap() int {
	runtime.GC()
	runtime.GC() // frees what the first one took out of the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
