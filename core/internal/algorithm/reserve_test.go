package algorithm_test

import (
	"context"
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// reservation predicts a turn at a vessel, which may be overdrawn: at the turn it must hold one
// permit, whatever the cost.
func (b *vessel) reservation(now, cost, patience int64) (want algorithm.Verdict) {
	b.advance(now)
	want = algorithm.Verdict{At: now, Wait: b.wait(now, 1)}
	want.RetryAfter = max(0, want.Wait-patience)
	if want.RetryAfter == 0 {
		want.Taken = cost
		b.level.Sub(b.level, new(big.Rat).SetInt64(cost))
	}
	if b.level.Sign() > 0 {
		want.Remaining = new(big.Int).Quo(b.level.Num(), b.level.Denom()).Int64()
	}
	want.ResetAfter = b.wait(now, b.burst)
	return want
}

// Callers get their turns in the order of their calls. Each waits for the debt of those before it,
// and a caller whose turn comes too late is not charged.
func TestReservationsAreExact(t *testing.T) {
	for _, of := range oddBuckets {
		rate, window, burst := of[0], of[1], of[2]
		t.Run(fmt.Sprintf("%d per %d, burst %d", rate, window, burst), rapid.MakeCheck(func(t *rapid.T) {
			limit, err := algorithm.Bucketed(rate, window, burst)
			if err != nil {
				t.Fatal(err)
			}
			e, v, last := newEngines(early), newVessel(rate, window, burst), algorithm.Verdict{}
			debts := limit.Reserved
			for range several(t) / 3 {
				e.now = min(late, e.now+later(t, window, last))
				counter := algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: 1 + upTo(t, limit.Reserved-1, "cost")}
				if debts -= counter.Cost; debts < 0 {
					counter.Cost, debts = 1, debts+counter.Cost
				}
				patience := upTo(t, 12*window, "patience")
				want := v.reservation(e.now, counter.Cost, patience)
				last = e.reserve(counter, patience)
				want.Position = last.Position
				if last != want {
					t.Fatalf("%s\ngot %+v, want %+v", e.story(len(e.steps)-1), last, want)
				}
			}
		}))
	}
}

// A debt that is too large to be counted is refused, with the time after which it is not.
func TestReservationsEndWhereNothingCanBeCounted(t *testing.T) {
	for _, of := range oddBuckets {
		limit := bucket(t, of[0], of[1], of[2])
		e, counter := newEngines(early), algorithm.Counter{Key: []byte("bucket"), Limit: &limit, Cost: limit.Reserved}
		var v algorithm.Verdict
		for tries := 0; v.RetryAfter == 0 && tries < 100_000; tries++ {
			v = e.process.Reserve(context.Background(), &counter, 1<<60)
		}
		if v.RetryAfter == 0 {
			continue // so large that it takes too long to fill
		}
		e.now += v.RetryAfter - 1
		if v := e.process.Reserve(context.Background(), &counter, 1<<60); v.RetryAfter != 1 {
			t.Errorf("%v: 1 µs before it can be counted: %+v", of, v)
		}
		e.now++
		if v := e.process.Reserve(context.Background(), &counter, 1<<60); v.RetryAfter != 0 {
			t.Errorf("%v: after RetryAfter: %+v", of, v)
		}
	}
}

// A reservation of no permits writes nothing, not even that the clock stepped back.
func TestReservationOfNothingWritesNothing(t *testing.T) {
	s, limit, e := startServer(t), bucket(t, 7, second, 7), newEngines(early)
	e.decide(true, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: &limit, Cost: 3}})
	e.run(t, s, timed, nil)
	before := s.state("bucket")
	e.now -= hour
	e.reserve(algorithm.Counter{Key: []byte("bucket"), Limit: &limit}, second)
	e.run(t, s, timed, nil)
	if s.state("bucket") != before {
		t.Error("the state was changed")
	}
}
