package algorithm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// twins are two keys in Redis with the same calls, except that only one of them gets the charge
// that is then given back.
type twins struct {
	*server
	limit *algorithm.Limit
	name  string
}

// charge charges both.
func (t twins) charge(now, cost int64) {
	t.t.Helper()
	for _, key := range []string{t.charged(), t.spared()} {
		if v := t.decide(timed, one(key, t.limit, now, cost))[0]; v.RetryAfter != 0 {
			t.t.Fatalf("%s refuses %d: %+v", key, cost, v)
		}
	}
}

func (t twins) charged() string { return t.name + " charged" }
func (t twins) spared() string  { return t.name + " spared" }

// left returns the permits left of each.
func (t twins) left(now int64) (charged, spared int64) {
	t.t.Helper()
	look := func(key string) int64 {
		a := one(key, t.limit, now, 1)
		a.charge = false
		return t.decide(timed, a)[0].Remaining
	}
	return look(t.charged()), look(t.spared())
}

// wantAlike checks that both have as many permits left, now and at any moment of the next two
// windows.
func (t twins) wantAlike(now int64) {
	t.t.Helper()
	for at := now; at <= now+2*t.limit.Window; at += max(1, t.limit.Window/37) {
		if charged, spared := t.left(at); charged != spared {
			t.t.Fatalf("%d after it was given back %d are left, without the charge it were %d", at-now, charged, spared)
		}
	}
}

// A charge that is given back at once leaves nothing behind, whatever was charged before and after
// it.
func TestGiveBackTakesTheChargeBack(t *testing.T) {
	s := startServer(t)
	for _, tc := range clockCases(t) {
		for name, after := range map[string]int64{"at once": 0, "a moment later": 1} {
			t.Run(tc.name+" "+name, func(t *testing.T) {
				both := twins{&server{s.Client, t, nil}, &tc.limit, tc.name + " " + name}
				both.charge(early, 2)
				taken := s.decide(timed, one(both.charged(), &tc.limit, early, 3))[0]
				both.charge(early, 2)
				if n := s.giveBack(taken, one(both.charged(), &tc.limit, early+after, 3)); n != 1 {
					t.Errorf("%d counters changed, want 1", n)
				}
				if tc.limit.Kind != algorithm.TokenBucket || after == 0 {
					both.wantAlike(early + after)
				}
				if got := s.expires(both.charged()) * 1000; got < early || got > early+after+lifetime(&tc.limit)+millisecond {
					t.Errorf("the key expires at %d", got)
				}
			})
		}
	}
}

// A charge of an older sub-window is given back to that sub-window, and to no other.
func TestGiveBackFromAnOlderSubWindow(t *testing.T) {
	const window = 32 * second
	limit := algorithm.Windowed(algorithm.SlidingWindow, 100, window)
	begin := early - early%int64(window)
	s := startServer(t)
	for _, between := range []int64{0, 1, 5, 31, 32} {
		both := twins{s, &limit, fmt.Sprint(between)}
		both.charge(begin, 2)
		taken := s.decide(timed, one(both.charged(), &limit, begin+2*second, 3))[0]
		both.charge(begin+2*second, 4)
		both.charge(begin+3*second, 5)
		now := begin + (2+between)*second
		both.charge(max(now, begin+3*second), 6)
		now = max(now, begin+3*second)
		if n := s.giveBack(taken, one(both.charged(), &limit, now, 3)); n != 1 {
			t.Errorf("%d sub-windows later: %d counters changed, want 1", between, n)
		}
		both.wantAlike(now)
	}
}

// If the charge no longer counts, nothing is given back, so the permits that other calls used since
// then still count.
func TestGiveBackTooLateChangesNothing(t *testing.T) {
	s := startServer(t)
	for _, tc := range clockCases(t) {
		taken := s.decide(timed, one(tc.name, &tc.limit, early, 3))[0]
		later := early + tc.longest
		s.decide(timed, one(tc.name, &tc.limit, later, 5))
		before, expires := s.state(tc.name), s.expires(tc.name)
		if n := s.giveBack(taken, one(tc.name, &tc.limit, later, 3)); n != 0 || s.state(tc.name) != before || s.expires(tc.name) != expires {
			t.Errorf("%s: %d changed, the state %q is now %q", tc.name, n, before, s.state(tc.name))
		}
		if n := s.giveBack(taken, one("no such key", &tc.limit, later, 3)); n != 0 || s.state("no such key") != "" {
			t.Errorf("%s: %d changed of a key that is not there", tc.name, n)
		}
	}
}

// Permits that came back since the charge are not given back once more: at no time are more left
// than if the charge had never been made. The rest is given back.
func TestGiveBackToABucketMintsNothing(t *testing.T) {
	s, rng := startServer(t), rand.New(rand.NewPCG(7, 7))
	for i := range 60 {
		of := oddBuckets[rng.IntN(len(oddBuckets))]
		limit := bucket(t, of[0], of[1], of[2]+10)
		both := twins{s, &limit, fmt.Sprint("bucket ", i)}
		// span returns how long it takes until so many permits have come back.
		span := func(permits int64) int64 { return (permits*limit.Permit/limit.Refill + 1) * limit.Tick }
		both.charge(early, 1+rng.Int64N(3))
		chargedAt, cost := early+rng.Int64N(span(2)), 1+rng.Int64N(4)
		taken := s.decide(timed, one(both.charged(), &limit, chargedAt, cost))[0]
		both.charge(chargedAt, 1+rng.Int64N(2))
		now := chargedAt + rng.Int64N(span(cost))

		before, _ := both.left(now)
		s.giveBack(taken, one(both.charged(), &limit, now, cost))
		after, _ := both.left(now)
		if back := cost - (now/limit.Tick-chargedAt/limit.Tick)*limit.Refill/limit.Permit - 1; after < before+max(0, back) {
			t.Fatalf("bucket %d: %d left before %d were given back, %d after", i, before, back, after)
		}
		for range 20 {
			if charged, spared := both.left(now); charged > spared {
				t.Fatalf("bucket %d: %d left, without the charge it were %d", i, charged, spared)
			}
			now += rng.Int64N(span(2))
		}
	}
}

// A charge from before the rate was raised or lowered is given back under either rate.
func TestGiveBackAfterTheRateChanged(t *testing.T) {
	s := startServer(t)
	for _, rate := range []int64{20, 9, 7} {
		before, after := bucket(t, 10, 10*second, 20), bucket(t, rate, 10*second, 20)
		e := newEngines(early)
		charge := func(limit *algorithm.Limit, cost int64) algorithm.Charge {
			counter := algorithm.Counter{Key: []byte("bucket"), Limit: limit, Cost: cost}
			return counter.Charged(&e.decide(true, e.now, []algorithm.Counter{counter})[0])
		}
		first := charge(&before, 10)
		charge(&after, 2)
		e.giveBack(first)
		for _, limit := range []*algorithm.Limit{&after, &before} {
			v := e.decide(false, e.now, []algorithm.Counter{{Key: []byte("bucket"), Limit: limit, Cost: 1}})[0]
			if v.Remaining != 18 {
				t.Errorf("10 charged at 10, 2 at %d, the 10 given back: %d left of %d at %d, want 18", rate, v.Remaining, limit.Max, limit.Refill)
			}
		}
		e.run(t, s, timed, nil)
	}
}
