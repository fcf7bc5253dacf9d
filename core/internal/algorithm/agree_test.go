package algorithm_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// family is limits that share a key, among which a trace changes: one algorithm and one window.
type family []algorithm.Limit

// families are the limits for which both engines must agree.
func families(t *testing.T) map[string]family {
	all := make(map[string]family)
	for _, window := range windows {
		for name, kind := range map[string]algorithm.Kind{"sliding": algorithm.SlidingWindow, "fixed": algorithm.FixedWindow} {
			var f family
			for _, most := range []int64{5, 1, 600_000, 100, algorithm.MaxPermits} {
				f = append(f, algorithm.Windowed(kind, most, window))
			}
			all[fmt.Sprintf("%s window of %d", name, window)] = f
		}
	}
	for i, of := range oddBuckets {
		rate, window, burst := of[0], of[1], of[2]
		f := family{bucket(t, rate, window, burst)}
		others := [][2]int64{
			{rate, 2*burst + 1}, {1 + rate/3, 1 + burst/2}, {rate + rate/2 + 1, burst}, {rate + rate/2, burst},
			{rate, largestBurst(rate, window)}, {1, 1},
		}
		for _, other := range others {
			if limit, err := algorithm.Bucketed(other[0], window, other[1]); err == nil { // most of them in other units
				f = append(f, limit)
			}
		}
		all[fmt.Sprintf("bucket %d", i)] = f
	}
	return all
}

// replay is calls and what this process answered to them, to be compared with what Redis answers.
type replay struct {
	asks     []ask
	verdicts [][]algorithm.Verdict
}

// add decides over counters of this process as the in-process store does: all are charged, or none.
func (r *replay) add(now int64, charge bool, key string, counters []*counter, costs []int64) []algorithm.Verdict {
	a, verdicts, fits := ask{now: now, charge: charge}, make([]algorithm.Verdict, len(counters)), true
	for i, c := range counters {
		limit := c.limit
		a.counters = append(a.counters, algorithm.Counter{Key: fmt.Append(nil, key, i), Limit: &limit, Cost: costs[i]})
		verdicts[i] = limit.Look(&c.state, now, costs[i], charge)
		fits = fits && verdicts[i].RetryAfter == 0
	}
	for i, c := range counters {
		if charge && fits && costs[i] > 0 {
			c.limit.Charge(&c.state, now, costs[i], "", &verdicts[i])
		}
	}
	r.asks, r.verdicts = append(r.asks, a), append(r.verdicts, verdicts)
	return verdicts
}

// run plays the calls in Redis, all of them with one of the scripts, and compares every answer.
func (r *replay) run(t *testing.T, s *server, script string) {
	t.Helper()
	pipe, sha := s.Pipeline(), s.load(script)
	cmds := make([]*redis.Cmd, len(r.asks))
	for i := range r.asks {
		cmds[i] = r.asks[i].queue(pipe, sha)
	}
	_, _ = pipe.Exec(context.Background())
	for i, cmd := range cmds {
		for n, v := range s.verdicts(cmd, r.asks[i]) {
			if v == r.verdicts[i][n] {
				continue
			}
			for at := max(0, i-3); at <= i; at++ {
				of := r.asks[at].counters[n]
				t.Logf("call %d at %d, charging %v: %s, %+v, cost %d: this process %+v", at,
					r.asks[at].now, r.asks[at].charge, of.Key, *of.Limit, of.Cost, r.verdicts[at][n])
			}
			t.Fatalf("call %d: Redis answers %+v", i, v)
		}
	}
}

const (
	lives = 12 // of a trace, each with a fresh counter
	calls = 80 // in a life
)

// trace has a random caller ask counters, each for a member of its family that changes now and then, and returns all that
// was said. With jumps the clock steps back an hour and forth again.
func trace(seed uint64, jumps bool, key string, of ...family) *replay {
	caller, r := newCaller(&of[0][0], seed), &replay{}
	for life := range lives {
		caller.begin()
		counters, costs := make([]*counter, len(of)), make([]int64, len(of))
		for i := range of {
			counters[i] = &counter{limit: of[i][0]}
		}
		back := int64(0)
		for range calls {
			for i, c := range counters {
				if caller.IntN(20) == 0 {
					c.limit = of[i][caller.IntN(len(of[i]))]
				}
				caller.limit = &c.limit
				if costs[i] = caller.next(); caller.IntN(20) == 0 {
					costs[i] = 0 // asks for nothing
				}
			}
			if jumps && caller.IntN(15) == 0 {
				caller.now += back - (hour - back)
				back = hour - back
			}
			verdicts := r.add(caller.now, caller.IntN(8) > 0, fmt.Sprint(key, ":", life, ":"), counters, costs)
			caller.last = verdicts[caller.IntN(len(verdicts))]
		}
	}
	return r
}

// Both engines give the same answers to the microsecond, whatever is asked and however the limits change.
func TestEnginesAgree(t *testing.T) {
	s := startServer(t)
	for name, f := range families(t) {
		t.Run(name, func(t *testing.T) {
			r := trace(1, false, name, f)
			r.run(t, s, timed(t, algorithm.DecideScript(r.asks[0].counters)))
		})
	}
}

// The same in a Redis that drops every key at its time: a key's expiry changes no answer. Only a lowered rate must not be
// asked for, because a key lives by the rate that it was written under.
func TestEnginesAgreeWhenKeysExpire(t *testing.T) {
	s := startServer(t)
	for name, f := range families(t) {
		t.Run(name, func(t *testing.T) {
			f := slices.DeleteFunc(f, func(l algorithm.Limit) bool { return l.Permit != f[0].Permit || l.Refill != f[0].Refill })
			r := trace(3, false, name, f)
			r.run(t, s, expiring(t, algorithm.DecideScript(r.asks[0].counters)))
		})
	}
}

// The same with a clock that steps back and forth.
func TestEnginesAgreeWhenTheClockJumps(t *testing.T) {
	s := startServer(t)
	for name, f := range families(t) {
		t.Run(name, func(t *testing.T) {
			r := trace(2, true, name, f)
			r.run(t, s, timed(t, algorithm.DecideScript(r.asks[0].counters)))
		})
	}
}

// The same over several counters at once, of one algorithm and of all: they are charged all or none.
func TestEnginesAgreeOnSeveralCounters(t *testing.T) {
	s, all := startServer(t), families(t)
	minute, fixed, odd := all["sliding window of 1000000"], all["fixed window of 1000000"], all["bucket 1"]
	for name, of := range map[string][]family{
		"sliding windows": {minute, minute, all["sliding window of 3660000000"]},
		"buckets":         {odd, all["bucket 4"]},
		"all algorithms":  {odd, minute, fixed},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				r := trace(seed, seed%2 == 1, fmt.Sprint(name, seed), of...)
				r.run(t, s, timed(t, algorithm.DecideScript(r.asks[0].counters)))
			}
		})
	}
}
