package memstore_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A key that many callers ask for at once has a cell, and is limited as exactly as in the table.
// Every call that passes gets its own number of remaining permits, even while others look at the
// key, ask for its neighbours, and give back.
func TestHotKeyIsExact(t *testing.T) {
	const most, day = 60_000, 24 * 3600 * 1_000_000
	bucket, err := algorithm.Bucketed(1000, 1_000_000_000, most) // one comes back per second
	hourly, wrong := algorithm.Bucketed(3600, 3_600_000_000, most)
	if err != nil || wrong != nil {
		t.Fatal(err, wrong)
	}
	for name, limit := range map[string]algorithm.Limit{
		"sliding window": algorithm.Windowed(algorithm.SlidingWindow, most, 366*day), "fixed window": algorithm.Windowed(algorithm.FixedWindow, most, 366*day),
		"calendar window": algorithm.Windowed(algorithm.CalendarWindow, most, 366*day), "bucket": bucket, "bucket by the hour": hourly,
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New(100, nil) // of one shard
			defer s.Close()
			hot := algorithm.Counter{Key: []byte("hot"), Limit: &limit, Cost: 1}
			var mu sync.Mutex
			var left []int64
			var opened atomic.Bool
			var all sync.WaitGroup
			for g := range max(4, 2*runtime.GOMAXPROCS(0)) {
				all.Go(func() {
					mine, cell := useUp(s, hot, g)
					if cell {
						opened.Store(true)
					}
					mu.Lock()
					left = append(left, mine...)
					mu.Unlock()
				})
			}
			all.Wait()
			if !opened.Load() {
				t.Error("the key never left the table")
			}
			slices.Sort(left)
			if n := len(slices.Compact(slices.Clone(left))); limit.Kind != algorithm.TokenBucket && (len(left) != most || n != most || left[0] != 0) {
				t.Errorf("%d calls passed, %d of them told different numbers, want %d", len(left), n, most)
			} else if len(left) < most || len(left) > most+60 { // a bucket gets one a second meanwhile
				t.Errorf("%d calls passed, want %d", len(left), most)
			}
		})
	}
}

// useUp charges a counter until it is full, and asks for other keys meanwhile. It returns how much
// each answer left, and whether the counter was seen out of the table.
func useUp(s *memstore.Store, hot algorithm.Counter, g int) (left []int64, opened bool) {
	var v algorithm.Verdict
	for i := 0; ; i++ {
		if i%200 == 0 {
			v = s.Heat(&hot)
		} else {
			s.DecideOne(&hot, true, &v)
		}
		if v.RetryAfter > 0 {
			return left, opened
		}
		left = append(left, v.Remaining)
		switch {
		case g == 0 && i%1000 == 0:
			s.DecideOne(&hot, false, &v)
		case g == 1 && i%1000 == 0:
			s.DecideOne(&algorithm.Counter{Key: fmt.Appendf(nil, "other%d", i%7), Limit: hot.Limit, Cost: 1}, true, &v)
		}
		if i%200 == 0 && s.HasCell() {
			opened = true
		}
	}
}
