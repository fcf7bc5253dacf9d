package memstore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// others returns limits of the algorithms that are not in limits.
func others() (log, slots, ban algorithm.Limit) {
	return algorithm.Windowed(algorithm.SlidingLog, 10, second), algorithm.Windowed(algorithm.Concurrency, 3, second),
		algorithm.Banned(2, 5*second, 60*second, second)
}

func charge(key string, limit *algorithm.Limit, mark string) algorithm.Charge {
	return algorithm.Charge{Key: []byte(key), Limit: limit, Cost: 1, Mark: mark}
}

// The key of a reservation is kept no longer than needed. A refused reservation, or one of no
// permits, creates no key.
func TestReserve(t *testing.T) {
	limit, ctx := limits(t, 1)["bucket"], context.Background()
	s, c := newStore(100)
	call := counter("key", limit)
	nothing := call
	nothing.Cost = 0
	for range 3 {
		if v := s.Reserve(ctx, &nothing, second); v.RetryAfter != 0 || v.Wait != 0 || s.Len() != 0 {
			t.Errorf("a reservation of nothing: %+v, %d keys", v, s.Len())
		}
	}
	tooLarge := call
	tooLarge.Cost = 1 << 33
	if v := s.Reserve(ctx, &tooLarge, second); v.RetryAfter == 0 || s.Len() != 0 {
		t.Errorf("more than can be counted: %+v, %d keys", v, s.Len())
	}
	for i := range int64(3) {
		if v := s.Reserve(ctx, &call, 2*second); v.Wait != i*second || v.RetryAfter != 0 || v.ResetAfter != (i+1)*second {
			t.Errorf("turn %d: %+v", i, v)
		}
	}
	if v := s.Reserve(ctx, &call, 2*second); v.RetryAfter != second || v.Wait != 3*second || v.ResetAfter != 3*second {
		t.Errorf("later than patience allows: %+v", v)
	}
	c.now += 3*second - 1
	if s.sweep(); s.Len() != 1 {
		t.Error("the debts were forgotten")
	}
	c.now++
	if s.sweep(); s.Len() != 0 {
		t.Error("the key outlives its debts")
	}
}

// Permits that are given back are there for others. Charges of unknown keys change nothing.
func TestGiveBack(t *testing.T) {
	s, _ := newStore(100)
	for name, limit := range limits(t, 3) {
		call := counter(name, limit)
		v := s.decide(true, call)[0]
		charges := []algorithm.Charge{call.Charged(&v), charge("no such key", limit, "")}
		if err := s.GiveBack(context.Background(), charges); err != nil || s.left(name, limit) != 3 {
			t.Errorf("%s: %v, %d left", name, err, s.left(name, limit))
		}
	}
	if s.Len() != len(limits(t, 3)) {
		t.Errorf("%d keys", s.Len())
	}
}

// A slot that is renewed stays taken, and its key stays. A slot that was lost is taken again, even
// over the limit.
func TestRenew(t *testing.T) {
	_, slots, _ := others()
	s, c := newStore(100)
	take := func(holder string) bool {
		call := counter("slots", &slots)
		call.Mark = holder
		return s.decide(true, call)[0].RetryAfter == 0
	}
	for i := range 3 {
		take(fmt.Sprint("holder ", i))
	}
	for range 3 {
		c.now += second * 2 / 3
		_ = s.Renew(context.Background(), []algorithm.Charge{charge("slots", &slots, "holder 1")})
		s.sweep()
	}
	if left := s.left("slots", &slots); left != 2 {
		t.Errorf("%d left beside one that was renewed", left)
	}
	take("a")
	take("b")
	if take("c") {
		t.Error("more than 3 slots")
	}
	_ = s.Renew(context.Background(), []algorithm.Charge{charge("slots", &slots, "holder 2"), charge("new slots", &slots, "holder 2")})
	_ = s.GiveBack(context.Background(), []algorithm.Charge{charge("slots", &slots, "a")})
	if take("c") || s.left("new slots", &slots) != 2 {
		t.Error("the slot of a call in flight was not taken again")
	}
	c.now += second
	if s.sweep(); s.Len() != 0 {
		t.Errorf("%d keys of slots that nobody renewed", s.Len())
	}
}

func TestRecords(t *testing.T) {
	log, _, _ := others()
	s, c := newStore(100)
	for i := range 3 {
		call := counter("log", &log)
		call.Mark = fmt.Sprint(i)
		s.decide(true, call)
		c.now += second / 2
	}
	records, err := s.Records(context.Background(), []byte("log"), &log)
	if err != nil || len(records) != 1 || records[0] != (algorithm.Record{At: c.now - second/2, Cost: 1, Note: "2"}) {
		t.Errorf("%+v, %v", records, err)
	}
	if records, err := s.Records(context.Background(), []byte("no such log"), &log); err != nil || len(records) != 0 || s.Len() != 1 {
		t.Errorf("of no log: %+v, %v, %d keys", records, err, s.Len())
	}
}

// A ban refuses its call and all beside it. By hand or after strikes, it is kept for as long as
// anything of it is remembered.
func TestBans(t *testing.T) {
	_, _, limit := others()
	s, c := newStore(100)
	tight := minute(1)
	call := []algorithm.Counter{counter("tight", tight), counter("ban", &limit), counter("free", minute(100))}
	call[1].Cost, call[1].Watched = 0, []int{0}
	s.decide(true, call...)
	for i := range 3 {
		v := s.decide(true, call...)
		if banned := v[1].RetryAfter > 0; banned != (i >= 1) || v[0].RetryAfter == 0 {
			t.Errorf("refusal %d: %+v", i, v)
		}
		c.now += second
	}
	if left := s.left("free", minute(100)); left != 99 {
		t.Errorf("%d left beside a ban", left)
	}
	c.now += 63*second - 1
	if s.sweep(); s.Len() != 1 {
		t.Errorf("%d keys, the ban is to be remembered", s.Len())
	}
	c.now++
	if s.sweep(); s.Len() != 0 {
		t.Errorf("%d keys, the ban is to be forgotten", s.Len())
	}
	_, _, _ = s.Ban(context.Background(), []byte("ban"), second)
	s.sweep()
	if v := s.decide(true, counter("ban", &limit), counter("free", minute(100))); v[0].RetryAfter != second || s.Len() != 1 {
		t.Errorf("banned by hand: %+v, %d keys", v, s.Len())
	}
	c.now += second
	if !s.take("free", minute(100)) {
		t.Error("the ban by hand does not end")
	}
}

// A counter in DryRun refuses no call, and is charged while the cost fits. A ban that watches it
// counts what it would refuse.
func TestDryCounters(t *testing.T) {
	s, _ := newStore(100)
	dry, free := counter("dry", minute(1)), counter("free", minute(100))
	dry.Lenient = true
	for i := range 3 {
		v := s.decide(true, dry, free)
		if (v[0].RetryAfter > 0) != (i > 0) || v[1].Remaining != int64(99-i) {
			t.Errorf("call %d: %+v", i, v)
		}
	}
	if v := s.decide(true, dry)[0]; v.RetryAfter == 0 || v.Remaining != 0 {
		t.Errorf("alone: %+v", v)
	}
	full := counter("full", minute(1))
	s.decide(true, full)
	other := counter("other", minute(1))
	other.Lenient = true
	if s.decide(true, other, full); s.left("other", minute(1)) != 1 {
		t.Error("a dry counter is charged for a call that was refused")
	}
}

// The counters of a group are charged together, or not at all, and stop no charge of others.
func TestDryCountersOfAGroup(t *testing.T) {
	s, _ := newStore(100)
	few, many, other, free := counter("few", minute(1)), counter("many", minute(9)), counter("other", minute(9)), counter("free", minute(9))
	for _, c := range []*algorithm.Counter{&few, &many, &other} {
		c.Lenient = true
	}
	few.Group, many.Group, other.Group = 1, 1, 2
	for i, left := range [][]int64{{0, 8, 8, 8}, {0, 8, 7, 7}, {0, 8, 6, 6}} {
		v := s.decide(true, many, few, other, free)
		if got := []int64{v[1].Remaining, v[0].Remaining, v[2].Remaining, v[3].Remaining}; !slices.Equal(got, left) {
			t.Errorf("call %d left %v, want %v", i, got, left)
		}
		if charged := many.Charged(&v[0]).Cost; v[0].RetryAfter != 0 || (charged > 0) != (i == 0) {
			t.Errorf("call %d was charged %d of the counter with many left: %+v", i, charged, v[0])
		}
	}
}

// Many callers take, renew and give back slots, and some of them die. There are never more slots
// than Max.
func TestSlotsUnderManyCallers(t *testing.T) {
	slots := algorithm.Windowed(algorithm.Concurrency, 5, algorithm.MaxWindow)
	s := New(5000, nil)
	defer s.Close()
	var inFlight, most, taken atomic.Int64
	together(func(goroutine int) {
		for i := range 200 {
			call := counter("slots", &slots)
			call.Mark = fmt.Sprint(goroutine, ":", i)
			if v := s.decide(true, call)[0]; v.RetryAfter != 0 {
				continue
			}
			taken.Add(1)
			if n := inFlight.Add(1); n > most.Load() {
				most.Store(n)
			}
			slot := []algorithm.Charge{charge("slots", &slots, call.Mark)}
			_ = s.Renew(context.Background(), slot)
			inFlight.Add(-1)
			_ = s.GiveBack(context.Background(), slot)
		}
	})
	if most.Load() > 5 || taken.Load() == 0 || s.left("slots", &slots) != 5 {
		t.Errorf("%d in flight at once, %d in all, %d left at the end", most.Load(), taken.Load(), s.left("slots", &slots))
	}
}

// All operations side by side leave a table that counts what it holds.
func TestOperationsUnderManyCallers(t *testing.T) {
	log, slots, ban := others()
	bucket, ctx := limits(t, 100)["bucket"], context.Background()
	s := New(100, nil)
	defer s.Close()
	together(func(goroutine int) {
		for i := range 100 {
			name := fmt.Sprint(i % 40)
			call := []algorithm.Counter{counter("log "+name, &log), counter("ban "+name, &ban), counter("slots "+name, &slots)}
			call[0].Lenient, call[2].Mark = i%3 == 0, fmt.Sprint(goroutine)
			call[1].Cost, call[1].Watched = 0, []int{0}
			turn := counter("bucket "+name, bucket)
			switch goroutine % 8 {
			case 0:
				_, _, _ = s.Ban(ctx, call[1].Key, second/1000)
			case 1:
				_ = s.Renew(ctx, []algorithm.Charge{charge("slots "+name, &slots, "other")})
			case 2:
				_, _ = s.Records(ctx, call[0].Key, &log)
			case 3:
				v := s.Reserve(ctx, &turn, second)
				_ = s.GiveBack(ctx, []algorithm.Charge{turn.Charged(&v)})
			case 4:
				_, _ = s.Reset(ctx, call[i%3].Key)
			default:
				verdicts := s.decide(true, call...)
				_ = s.GiveBack(ctx, []algorithm.Charge{call[0].Charged(&verdicts[0]), call[2].Charged(&verdicts[2])})
			}
		}
	})
	if s.Len() != s.entries() || s.Len() > 100 {
		t.Errorf("%d keys are said to be there, %d are", s.Len(), s.entries())
	}
}

// A notice is left once for each limit until its end, and is no longer kept then. Reset forgets it.
func TestPost(t *testing.T) {
	s, c := newStore(100)
	key, other := []byte("key"), []byte("other")
	if s.Post(key, "10", c.now) || s.Post(key, "10", c.now-1) || s.Len() != 0 {
		t.Error("a notice whose end has come is left")
	}
	if !s.Post(key, "10", c.now+second) || s.Post(key, "10", c.now+9*second) || !s.Post(other, "10", c.now+2*second) || s.Len() != 2 {
		t.Errorf("%d notices are kept", s.Len())
	}
	c.now += second - 1
	if s.Post(key, "10", c.now+second) {
		t.Error("a notice ends too early")
	}
	c.now++
	if s.sweep(); s.Len() != 1 || !s.Post(key, "10", c.now+second) {
		t.Error("a notice is kept for too long")
	}
	if !s.Post(key, "20", c.now+3*second) || s.Post(key, "20", c.now+second) || s.Post(key, "10", c.now+second) || s.Len() != 2 {
		t.Error("a notice does not know its limits")
	}
	if c.now += second; s.Post(key, "20", c.now+second) || !s.Post(key, "10", c.now+second) {
		t.Error("each limit has an end of its own")
	}
	if changed, err := s.Reset(context.Background(), key); !changed || err != nil || !s.Post(key, "10", c.now+second) || !s.Post(key, "20", c.now+second) {
		t.Errorf("Reset: %v, %v", changed, err)
	}
	full, c := newStore(3)
	for i := range 100 {
		if !full.Post(fmt.Append(nil, i), "10", c.now+second) || full.Len() > 3 {
			t.Errorf("%d notices are kept", full.Len())
		}
	}
}
