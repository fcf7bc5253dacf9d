package lease_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// Counted when they are used, no more permits pass than the limit allows, in any span of a sliding
// window and in any fixed window. This holds however many permits each process leases, and however
// slow the store is. In the end, all unused permits have been given back.
func TestNeverOverTheLimitByUse(t *testing.T) {
	run := func(p *callers) (wrong error) {
		synctest.Test(t, func(t *testing.T) { wrong = p.run(t) })
		return wrong
	}
	// Drawn callers may be too few to lease anything; these do.
	busy := &callers{limit: Windowed(algorithm.SlidingWindow, 640, Second), all: []caller{{lease: 40, cost: 1, pauses: make([]time.Duration, 120)}}}
	if err := run(busy); err != nil || busy.leased == 0 {
		t.Fatalf("%d permits were leased by 120 calls, %v", busy.leased, err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		if err := run(drawCallers(rt)); err != nil {
			rt.Fatal(err)
		}
	})
}

// callers are the callers of one counter, in several processes.
type callers struct {
	limit    *algorithm.Limit
	begin    time.Duration
	all      []caller
	mu       sync.Mutex
	admitted []admission
	leased   int
}

type caller struct {
	process int
	lease   int64
	cost    int64
	pauses  []time.Duration // between its calls
}

type admission struct {
	at      time.Time
	permits int64
}

func drawCallers(t *rapid.T) *callers {
	window := rapid.SampledFrom([]int64{32_000, 1_000_003, Second}).Draw(t, "window")
	micros := func(most int64, what string) time.Duration {
		return time.Duration(rapid.Int64Range(0, most).Draw(t, what)) * time.Microsecond
	}
	p := &callers{begin: micros(2*window, "begin")}
	kind := rapid.SampledFrom([]algorithm.Kind{algorithm.SlidingWindow, algorithm.FixedWindow}).Draw(t, "kind")
	p.limit = Windowed(kind, rapid.SampledFrom([]int64{5, 40, 640}).Draw(t, "most"), window)
	for range rapid.IntRange(1, 8).Draw(t, "callers") {
		c := caller{
			process: rapid.IntRange(0, 2).Draw(t, "process"), lease: rapid.SampledFrom([]int64{0, 3, 40, 40}).Draw(t, "lease"),
			cost: rapid.SampledFrom([]int64{1, 1, 1, 3}).Draw(t, "cost"),
		}
		pause := rapid.SampledFrom([]int64{0, window / 1000, window / 40, window / 3}).Draw(t, "pause")
		for range rapid.IntRange(1, 120).Draw(t, "calls") {
			c.pauses = append(c.pauses, micros(pause, "pause"))
		}
		p.all = append(p.all, c)
	}
	return p
}

func (p *callers) run(t *testing.T) error {
	time.Sleep(p.begin)
	shared := NewShared(t, 100)
	late := time.Duration(p.limit.Window/100) * time.Microsecond // a third of a sub-window
	shared.BeforeDecide, shared.AfterDecide = func() { time.Sleep(late / 2) }, func() { time.Sleep(late / 2) }
	var processes []Process
	for range 3 {
		processes = append(processes, NewProcess(t, shared))
	}
	var running sync.WaitGroup
	for _, c := range p.all {
		running.Go(func() { p.call(processes[c.process], c) })
	}
	running.Wait()
	for _, process := range processes {
		process.Close()
	}
	return p.check(shared)
}

// call makes the calls of one caller. A permit is used when it was charged, or when it was asked
// for if that was later.
func (p *callers) call(process Process, c caller) {
	for _, pause := range c.pauses {
		time.Sleep(pause)
		asked := time.Now()
		v := process.Ask(Leased("user:a", p.limit, c.cost, c.lease))[0]
		if v.RetryAfter > 0 {
			time.Sleep(time.Duration(min(v.RetryAfter, p.limit.Window/64)) * time.Microsecond)
			continue
		}
		p.mu.Lock()
		used := time.UnixMicro(v.At)
		if used.Before(asked) { // a leased permit, which must count as if it had been charged now
			used = asked
			p.leased++
		}
		p.admitted = append(p.admitted, admission{used, c.cost})
		p.mu.Unlock()
	}
}

// check checks every span of a window, and the permits that are left in the end.
func (p *callers) check(shared *Shared) error {
	window := time.Duration(p.limit.Window) * time.Microsecond
	for _, first := range p.admitted {
		var within int64
		for _, a := range p.admitted {
			if d := a.at.Sub(first.at); d >= 0 && d < window {
				within += a.permits
			}
		}
		most := p.limit.Max
		if p.limit.Kind == algorithm.FixedWindow {
			most *= 2 // across a boundary
		}
		if within > most {
			return fmt.Errorf("%d permits within a window from %v on, want at most %d", within, first.at, most)
		}
	}
	if p.limit.Kind != algorithm.SlidingWindow || len(p.admitted) == 0 {
		return nil
	}
	var counting int64 // the store counts what was used, in the sub-windows in which it was used
	now := time.Now().UnixMicro()
	for _, a := range p.admitted {
		if subWindow(a.at.UnixMicro(), p.limit.Window) >= subWindow(now, p.limit.Window)-32 {
			counting += a.permits
		}
	}
	if got := shared.Left(Counter("user:a", p.limit, 1)); got != p.limit.Max-counting {
		return fmt.Errorf("%d left of %d in the end, and %d were used", got, p.limit.Max, counting)
	}
	return nil
}

func subWindow(at, window int64) int64 { return at * 32 / window }
