package memstore

import (
	"context"
	"fmt"
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
