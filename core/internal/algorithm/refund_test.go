package algorithm_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// pair is two counters with the same calls, except that only one of them gets the charge that is
// given back later.
type pair struct{ charged, spared counter }

// both makes both counters admit a cost.
func (p *pair) both(t *rapid.T, now, cost int64) {
	for _, c := range []*counter{&p.charged, &p.spared} {
		if v := c.decide(now, cost); v.RetryAfter != 0 {
			t.Fatalf("refuses %d: %+v", cost, v)
		}
	}
}

// refunded draws calls before and after a charge. It then gives back the charge or a part of it
// while it still counts.
func refunded(t *rapid.T, limit algorithm.Limit, window int64) (p pair, now int64) {
	p = pair{counter{limit: limit}, counter{limit: limit}}
	now = early + upTo(t, 2*window, "begin")
	few := max(1, limit.Max/100)
	for range rapid.IntRange(1, 5).Draw(t, "before") { // the first opens a fixed window
		p.both(t, now, 1+upTo(t, few-1, "cost"))
		now += upTo(t, window/10, "passes")
	}
	cost := 1 + upTo(t, 10*few, "charge")
	v := p.charged.decide(now, cost)
	counter := algorithm.Counter{Limit: &p.charged.limit, Cost: cost}
	charge := counter.Charged(&v)
	if kept := upTo(t, cost-1, "kept"); kept > 0 {
		charge.Cost -= kept
		p.spared.decide(now, kept)
	}
	for range rapid.IntRange(0, 5).Draw(t, "after") {
		now += upTo(t, window/3, "passes")
		p.both(t, now, 1+upTo(t, few-1, "cost"))
	}
	charge.GiveBack(&p.charged.state, now)
	return p, now
}

// In windows, logs and calendars, a charge that is given back leaves nothing behind, however late
// that is.
func TestRefundIsAsIfNeverCharged(t *testing.T) {
	for _, kind := range []algorithm.Kind{algorithm.SlidingWindow, algorithm.SlidingLog, algorithm.FixedWindow, algorithm.CalendarWindow} {
		for _, window := range []int64{millisecond, second, 61 * 60 * second, algorithm.MaxWindow / 12} {
			t.Run(kind.Tag(), rapid.MakeCheck(func(t *rapid.T) {
				p, now := refunded(t, algorithm.Windowed(kind, algorithm.MaxEntries, window), window)
				for range 40 {
					if got, want := p.charged.look(now, 1), p.spared.look(now, 1); got != want {
						t.Fatalf("given back at %d: %+v, want %+v", now, got, want)
					}
					now += 1 + window/29
				}
			}))
		}
	}
}

// A refund of a bucket never leaves more than if the charge had never been made. If it comes at
// once, it gives back everything.
func TestRefundOfABucketMintsNothing(t *testing.T) {
	for _, of := range oddBuckets {
		rate, window := of[0], of[1]
		burst := max(200, of[2])
		limit, err := algorithm.Bucketed(rate, window, burst)
		if err != nil {
			continue
		}
		refill := int64(math.Ceil(float64(window) / float64(rate) * 20))
		t.Run("", rapid.MakeCheck(func(t *rapid.T) {
			p, now := refunded(t, limit, min(refill, window))
			for range 40 {
				if got, want := p.charged.look(now, 1), p.spared.look(now, 1); got.Remaining > want.Remaining {
					t.Fatalf("at %d: %d left, without the charge %d", now, got.Remaining, want.Remaining)
				}
				now += 1 + refill/29
			}
		}))
	}
}

// If the clock stepped back since the charge, a refund creates no permits: it gives back the
// permits that have not come back by themselves, and no others.
func TestRefundOfABucketAfterTheClockSteppedBack(t *testing.T) {
	c := counter{limit: bucket(t, 10, 10*second, 10)}
	v := c.decide(early, 10)
	counter := algorithm.Counter{Limit: &c.limit, Cost: 10}
	charge := counter.Charged(&v)
	back := int64(early - hour)
	c.decide(back, 1) // notes the step
	c.decide(back+5*second, 5)
	charge.GiveBack(&c.state, back+5*second)
	if v := c.look(back+5*second, 1); v.Remaining != 5 {
		t.Errorf("%d left of 10, of which 5 had come back and were taken, want the 5 that were given back", v.Remaining)
	}
}
