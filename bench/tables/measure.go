package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	calls    = 1_000_000 // of a round, by all callers together
	expiring = 1_000_000 // keys that expire at once
	lives    = 3 * time.Second
)

func subjects(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("user:%09d", i)
	}
	return all
}

// each runs one caller for each processor, and returns how long a call took: the time of all
// divided by the calls of all.
func each(caller func(calls int)) float64 {
	callers := runtime.GOMAXPROCS(0)
	begin := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() { caller(calls / callers) })
	}
	all.Wait()
	return float64(time.Since(begin).Nanoseconds()) / calls
}

// among is the time of a call for one of so many subjects, which are all there.
func among(c contender, n int) float64 {
	t, subjects := c.open(maxKeys, plenty, time.Second), subjects(n)
	defer t.close()
	for _, subject := range subjects {
		t.take(subject)
	}
	return each(func(calls int) {
		random := rand.NewPCG(rand.Uint64(), 1)
		for range calls {
			t.take(subjects[random.Uint64()%uint64(len(subjects))])
		}
	})
}

// flood is the time of a call for a subject that comes once, with a table that is full of those.
func flood(c contender) float64 {
	t := c.open(maxKeys/10, plenty, time.Hour)
	defer t.close()
	var next atomic.Int64
	return each(func(calls int) {
		subject := []byte("user:000000000")
		for n := next.Add(int64(calls)); calls > 0; calls-- {
			n--
			for at, rest := len(subject)-1, n; at >= len("user:"); at, rest = at-1, rest/10 {
				subject[at] = byte('0' + rest%10)
			}
			t.take(string(subject))
		}
	})
}

// bytesPerKey is what a key takes, its own bytes included: of the limiter these are the whole of
// what it counts by, about 50; of the others the 14 of the subject.
func bytesPerKey(c contender) float64 {
	before := inUse()
	t := c.open(2*maxKeys, plenty, time.Hour)
	defer t.close()
	for i := range maxKeys {
		t.take(fmt.Sprintf("user:%09d", i))
	}
	return (inUse() - before) / maxKeys
}

func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// whileExpiring is the time in nanoseconds that 99 of 100 calls for a busy key took at most while a
// million others expired, and that of the longest call in microseconds.
func whileExpiring(c contender) []float64 {
	t := c.open(2*expiring, 1, lives)
	defer t.close()
	for i := range expiring {
		t.take(fmt.Sprintf("user:%09d", i))
	}
	took := make([]int64, 0, 1<<22)
	for until := time.Now().Add(lives + time.Second); time.Now().Before(until); time.Sleep(2 * time.Microsecond) {
		begin := time.Now()
		t.take("busy")
		took = append(took, time.Since(begin).Nanoseconds())
	}
	slices.Sort(took)
	return []float64{float64(took[len(took)*99/100]), float64(took[len(took)-1]) / 1000}
}
