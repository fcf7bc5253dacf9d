package localfirst

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
	giving  []*giving

	resets map[string]int // how many Resets of a key are under way
}

// giving holds charges that are on their way back to the store.
type giving struct {
	charges []algorithm.Charge
	over    chan struct{} // closed when they are back
}

func (g *giver) init(l *leases) { g.leases, g.next = l, math.MaxInt64 }

// begin says whether something may run that close waits for; done ends it.
func (g *giver) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.beginLocked()
}

// beginTrip is begin for a trip, which does not begin while its key is being reset.
func (g *giver) beginTrip(key []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resets[string(key)] == 0 && g.beginLocked()
}

func (g *giver) beginLocked() bool {
	if !g.stopped {
		g.running.Add(1)
	}
	return !g.stopped
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

// add queues so many permits of a batch to be given back.
func (g *giver) add(e *lease, b *batch, permits int64) {
	if permits == 0 {
		return
	}
	g.mu.Lock()
	g.charges = append(g.charges, algorithm.Charge{
		Key: e.key, Limit: e.limit, Cost: permits, At: b.verdict.At, Position: b.verdict.Position,
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
	var now []*giving
	for _, together := range batches(g.charges) {
		now = append(now, g.begun(together))
	}
	g.charges = nil
	g.mu.Unlock()
	var all sync.WaitGroup
	for _, one := range now {
		all.Go(func() { g.giveNow(one) })
	}
	all.Wait()
}

// giveSoon gives back in the background the charges of a call that was refused.
func (g *giver) giveSoon(charges []algorithm.Charge) {
	g.mu.Lock()
	one := g.begun(charges)
	g.mu.Unlock()
	g.leases.store.InBackground(func() { g.giveNow(one) })
}

// begun notes charges that are being given back. The giver must be locked.
func (g *giver) begun(charges []algorithm.Charge) *giving {
	one := &giving{charges, make(chan struct{})}
	g.giving = append(g.giving, one)
	return one
}

func (g *giver) giveNow(one *giving) {
	defer g.gave(one)
	_ = g.leases.store.GiveBack(context.Background(), one.charges)
}

func (g *giver) gave(one *giving) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.giving = slices.DeleteFunc(g.giving, func(other *giving) bool { return other == one })
	close(one.over)
}

// beginReset keeps trips for a key from beginning until endReset.
func (g *giver) beginReset(key []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resets == nil {
		g.resets = make(map[string]int)
	}
	g.resets[string(key)]++
}

func (g *giver) endReset(key []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resets[string(key)]--; g.resets[string(key)] == 0 {
		delete(g.resets, string(key))
	}
}

// forget drops what is still to be given back to a key that is being reset. It returns a channel
// for each return already under way, closed when it is over.
func (g *giver) forget(key []byte) (underWay []<-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := func(c algorithm.Charge) bool { return string(c.Key) == string(key) }
	g.charges = slices.DeleteFunc(g.charges, of)
	for _, one := range g.giving {
		if slices.ContainsFunc(one.charges, of) {
			underWay = append(underWay, one.over)
		}
	}
	return underWay
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
