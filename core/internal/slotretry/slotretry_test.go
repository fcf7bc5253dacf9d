package slotretry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/slotretry"
)

// store counts how often each slot was given back. It fails until it is repaired.
type store struct {
	mu       sync.Mutex
	repaired bool
	requests int
	given    map[string]int
}

func (s *store) giveBack(_ context.Context, charges []algorithm.Charge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if !s.repaired {
		return errors.New("out of order")
	}
	for _, c := range charges {
		s.given[string(c.Key)]++
	}
	return nil
}

func (s *store) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repaired = true
}

func slots(n int, window time.Duration) (charges []algorithm.Charge) {
	limit := algorithm.Windowed(algorithm.Concurrency, 5, window.Microseconds())
	for i := range n {
		charges = append(charges, algorithm.Charge{Key: fmt.Append(nil, "slot", i), Limit: &limit, Mark: "holder"})
	}
	return charges
}

// Slots are given back until the store takes them, all together, and as often as was asked for.
func TestSlotsAreGivenBackUntilTheStoreTakesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &store{given: make(map[string]int)}
		queue := slotretry.New(store.giveBack, panics.Log)
		queue.Add(slots(250, time.Hour), 2)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if store.requests == 0 || store.requests > 3*15 || queue.Len() != 250 {
			t.Errorf("%d requests in 10 s, %d slots wait", store.requests, queue.Len())
		}
		store.repair()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(store.given) != 250 || store.given["slot0"] != 2 || queue.Len() != 0 {
			t.Errorf("%d slots were given back, the first %d times, and %d wait", len(store.given), store.given["slot0"], queue.Len())
		}
	})
}

// A store that hangs for longer than a Window may grant a slot only when it answers again. The slot is
// given back then.
func TestSlotsThatAHangingStoreMayGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &store{given: make(map[string]int)}
		queue := slotretry.New(store.giveBack, panics.Log)
		queue.Add(slots(1, time.Minute), 2)
		time.Sleep(time.Hour)
		store.repair()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if store.given["slot0"] != 2 || queue.Len() != 0 {
			t.Errorf("the slot was given back %d times, and %d wait", store.given["slot0"], queue.Len())
		}
	})
}

// Slots are forgotten when their Window is over, or the queue is closed.
func TestSlotsThatAreForgotten(t *testing.T) {
	for name, end := range map[string]func(*slotretry.Queue){
		"window over": func(*slotretry.Queue) { time.Sleep(2 * time.Minute) },
		"closed":      func(q *slotretry.Queue) { q.Close(); time.Sleep(2 * time.Second) },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &store{given: make(map[string]int)}
			queue := slotretry.New(store.giveBack, panics.Log)
			queue.Add(slots(1, time.Minute), 1)
			end(queue)
			synctest.Wait()
			store.repair()
			time.Sleep(time.Hour)
			synctest.Wait()
			if queue.Len() != 0 || len(store.given) != 0 {
				t.Errorf("%s: %d slots wait, %d were given back", name, queue.Len(), len(store.given))
			}
		})
	}
}
