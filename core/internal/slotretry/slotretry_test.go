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
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/slotretry"
)

// store counts how often each slot was given back. It fails until it is repaired.
type store struct {
	mu       sync.Mutex
	repaired bool
	requests int
	given    map[string]int
	first    func() // runs during the first request; may be nil
}

func (s *store) giveBack(_ context.Context, charges []algorithm.Charge) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests++; s.requests == 1 && s.first != nil {
		s.first()
	}
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

// addUnconfirmed adds slots that are to be given back twice.
func addUnconfirmed(queue *slotretry.Queue, slots []algorithm.Charge) {
	for _, slot := range slots {
		queue.AddUnconfirmed(slot, 2)
	}
}

// Slots are given back until the store takes them, all together, and as often as was asked for.
func TestSlotsAreGivenBackUntilTheStoreTakesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &store{given: make(map[string]int)}
		queue := slotretry.New(store.giveBack, panics.Log)
		addUnconfirmed(queue, slots(250, time.Hour))
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
		addUnconfirmed(queue, slots(1, time.Minute))
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
			queue.Add(slots(1, time.Minute))
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

// However many slots a store may have granted during an outage, there is room for those of calls that end.
func TestSlotsOfCallsThatEndHaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &store{given: make(map[string]int)}
		queue := slotretry.New(store.giveBack, panics.Log)
		held := slots(40_002, time.Hour)
		store.first = func() { // while the first ones are tried
			addUnconfirmed(queue, held[20_000:40_001])
			queue.Add(held[40_001:])
		}
		queue.Add(held[:1])
		addUnconfirmed(queue, held[1:20_000])
		time.Sleep(10 * time.Second)
		store.repair()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(store.given); store.given["slot0"] != 1 || store.given["slot40001"] != 1 || n != 5001 || queue.Len() != 0 {
			t.Errorf("%d slots were given back, those of calls %d and %d times, and %d wait", n, store.given["slot0"], store.given["slot40001"], queue.Len())
		}
	})
}

// A key that holds a value that we never wrote keeps no other slot from being given back, and has no
// slot of ours.
func TestASlotOfAForeignValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := make(map[string]int)
		queue := slotretry.New(func(_ context.Context, charges []algorithm.Charge) error {
			for _, c := range charges {
				if string(c.Key) == "slot1" {
					return errors.Join(&failure.Error{Class: failure.Refused, Err: errors.New("OOM")}, &failure.Error{Class: failure.Foreign, Err: errors.New("WRONGTYPE")})
				}
			}
			for _, c := range charges {
				given[string(c.Key)]++
			}
			return nil
		}, panics.Log)
		addUnconfirmed(queue, slots(3, time.Hour))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(given) != 2 || given["slot0"] != 2 || given["slot2"] != 2 || queue.Len() != 0 {
			t.Errorf("given back: %v, %d wait", given, queue.Len())
		}
	})
}

// A store that answers does not grant a slot later. Its slot is forgotten after a Window, even if the
// store never takes it back.
func TestASlotThatTheStoreRefusesToTakeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := slotretry.New(func(context.Context, []algorithm.Charge) error {
			return &failure.Error{Class: failure.Refused, Err: errors.New("NOPERM")}
		}, panics.Log)
		addUnconfirmed(queue, slots(1, time.Minute))
		time.Sleep(50 * time.Second)
		if queue.Len() != 1 {
			t.Errorf("%d slots wait, want 1", queue.Len())
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if queue.Len() != 0 {
			t.Errorf("%d slots wait after the Window", queue.Len())
		}
	})
}
