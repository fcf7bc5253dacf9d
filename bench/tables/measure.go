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
	calls    = 1_000_000 // per round, by all callers together
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

// each runs one caller for each processor, and returns the time per call: the total time divided by
// the calls of all.
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

// among returns the time of a call for a random one of n subjects, all of which are in the table.
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

// flood returns the time of a call for a new subject, when the table is full of subjects that
// called once.
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

// bytesPerKey returns the memory of a key, including its own bytes. These are about 50 for the
// limiter, which keeps a longer key, and the 14 of the subject for the others.
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

// whileExpiring returns two times of calls for a busy key while a million others expire: the 99th
// percentile in nanoseconds, and the longest in microseconds.
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
