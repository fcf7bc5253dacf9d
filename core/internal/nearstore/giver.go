package nearstore

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const (
	// sweepPause is how long there is between two looks at all leases, at least.
	sweepPause = int64(5 * time.Millisecond)
	// forgetAfter is for how long a lease that nobody uses is remembered, in nanoseconds.
	forgetAfter = int64(time.Second)
	// giveTogether is how many charges are given back in one go.
	giveTogether = 200
)

// giver gives back what was leased and not used. It sleeps until a lease ends; without leases there is no timer.
type giver struct {
	leases  *leases
	running sync.WaitGroup // trips, and giving back; none begins once stopped

	mu      sync.Mutex
	stopped bool
	timer   *time.Timer
	next    int64 // when it wakes
	charges []algorithm.Charge
}

func (g *giver) init(l *leases) { g.leases, g.next = l, math.MaxInt64 }

// begin says whether something may run that close waits for; done ends it.
func (g *giver) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	g.running.Add(1)
	return true
}

func (g *giver) done() {
	if g.isStopped() {
		g.give() // nobody else would, what a trip left meanwhile
	}
	g.running.Done()
}

func (g *giver) isStopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped
}

// add has so many calls of a batch given back.
func (g *giver) add(e *lease, b *batch, calls int64) {
	if calls == 0 {
		return
	}
	g.mu.Lock()
	g.charges = append(g.charges, algorithm.Charge{
		Key: e.key, Limit: e.limit, Cost: calls * e.cost, At: b.verdict.At, Reset: b.verdict.ResetAfter, Position: b.verdict.Position,
	})
	g.mu.Unlock()
	g.wake(0)
}

// wake has the leases looked at soon after a time.
func (g *giver) wake(at int64) {
	now := g.leases.store.now()
	at = max(at, now+sweepPause)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped || at >= g.next {
		return
	}
	g.next = at
	if g.timer == nil {
		g.timer = time.AfterFunc(time.Duration(at-now), g.sweep)
		return
	}
	g.timer.Reset(time.Duration(at - now))
}

// sweep ends the leases whose time has come, forgets those that nobody uses, and gives back.
func (g *giver) sweep() {
	if !g.begin() {
		return
	}
	defer g.done()
	g.mu.Lock()
	g.next = math.MaxInt64
	g.mu.Unlock()
	now, next := g.leases.store.now(), int64(math.MaxInt64)
	g.leases.table.each(func(in *set[lease]) {
		for e := range in.all {
			at, forget := g.leases.look(e, now)
			if forget {
				in.remove(e)
			}
			next = min(next, at)
		}
	})
	if next < math.MaxInt64 {
		g.wake(next)
	}
	g.give()
}

// look ends a lease whose time has come, and says when the next look is due, or that it is to be forgotten.
func (l *leases) look(e *lease, now int64) (next int64, forget bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.batch.Load(); b != nil {
		if now < b.ends {
			return b.ends, false
		}
		l.end(e)
	}
	switch {
	case e.trip != nil:
		return math.MaxInt64, false // it wakes the giver when it is back
	case now < e.idle+forgetAfter:
		return e.idle + forgetAfter, false
	}
	e.dropped = true
	return math.MaxInt64, true
}

// give gives back what there is, as far as the store can be reached: what is lost costs permits until their window is over, and
// admits nobody.
func (g *giver) give() {
	g.mu.Lock()
	charges := g.charges
	g.charges = nil
	g.mu.Unlock()
	var all sync.WaitGroup
	for _, together := range batches(charges) {
		all.Go(func() { _ = g.leases.store.GiveBack(context.Background(), together) })
	}
	all.Wait()
}

// forget gives back nothing of a key that was reset.
func (g *giver) forget(key []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.charges = slices.DeleteFunc(g.charges, func(c algorithm.Charge) bool { return string(c.Key) == string(key) })
}

// batches cuts charges into parts of so many at most, in each of which no key comes twice: a script reads all keys before it writes.
func batches(charges []algorithm.Charge) (parts [][]algorithm.Charge) {
	var keys []map[string]bool
	for _, c := range charges {
		at := 0
		for at < len(parts) && (len(parts[at]) == giveTogether || keys[at][string(c.Key)]) {
			at++
		}
		if at == len(parts) {
			parts, keys = append(parts, nil), append(keys, make(map[string]bool))
		}
		parts[at] = append(parts[at], c)
		keys[at][string(c.Key)] = true
	}
	return parts
}

// stop ends the timer, and lets nothing begin any more.
func (g *giver) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// finish gives back what there is, and waits for what runs, for so long at most.
func (g *giver) finish(timeout time.Duration) {
	over := make(chan struct{})
	go func() {
		g.give()
		g.running.Wait()
		close(over)
	}()
	patience := time.NewTimer(timeout)
	defer patience.Stop()
	select {
	case <-over:
	case <-patience.C:
	}
}
