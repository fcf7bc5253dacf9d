package algorithm_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// vessel models a token bucket in fractions, which are never rounded.
type vessel struct {
	rate, window, burst, tick int64
	level                     *big.Rat // permits in it at the tick
	at                        int64
}

func newVessel(rate, window, burst int64) *vessel {
	v := &vessel{rate: rate, window: window, burst: burst, tick: 1, level: new(big.Rat).SetInt64(burst)}
	if window >= hour && window%millisecond == 0 {
		v.tick = millisecond
	}
	return v
}

// advance adds what has come back by now.
func (b *vessel) advance(now int64) {
	at := now / b.tick
	b.level.Add(b.level, new(big.Rat).Mul(big.NewRat((at-b.at)*b.tick, b.window), new(big.Rat).SetInt64(b.rate)))
	if full := new(big.Rat).SetInt64(b.burst); b.level.Cmp(full) > 0 {
		b.level = full
	}
	b.at = at
}

// wait returns how long it takes until so many permits are in it, in whole ticks.
func (b *vessel) wait(now, permits int64) int64 {
	missing := new(big.Rat).Sub(new(big.Rat).SetInt64(permits), b.level)
	if missing.Sign() <= 0 {
		return 0
	}
	ticks := missing.Mul(missing, new(big.Rat).SetFrac(big.NewInt(b.window), new(big.Int).Mul(big.NewInt(b.rate), big.NewInt(b.tick))))
	n, rest := new(big.Int).QuoRem(ticks.Num(), ticks.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return (b.at+n.Int64())*b.tick - now
}

func (b *vessel) check(t failer, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	b.advance(now)
	want := algorithm.Verdict{At: now, RetryAfter: b.wait(now, cost), Position: v.Position}
	if want.RetryAfter == 0 {
		want.Taken = cost
		b.level.Sub(b.level, new(big.Rat).SetInt64(cost))
	}
	want.Remaining = new(big.Int).Quo(b.level.Num(), b.level.Denom()).Int64()
	want.ResetAfter = b.wait(now, b.burst)
	if v != want {
		t.Errorf("got %+v, want %+v", v, want)
	}
}

// oddBuckets lists rate, window and burst of buckets in which rounding would show: rates that do
// not divide the second, a rate for which whole microseconds per permit admit far too much,
// millisecond ticks, bursts above and below the rate, and an hour that has no millisecond ticks.
var oddBuckets = [][3]int64{
	{1, second, 1},
	{7, second, 7},
	{600_000, second, 600_000},
	{999_983, second, 100},
	{3, 61 * 60 * second, 3},
	{10, second, 3},
	{10, second, 35},
	{1_000_003, millisecond, 17},
	{5, 1001, 9},
	{11, hour + 1, 5},
	{100_003, 7 * hour, 1_000_000},
	{1, algorithm.MaxWindow, 2},
	{365, algorithm.MaxWindow, 1000},
	{algorithm.MaxPermits, 1000 * second, 1},
}

func TestTokenBucketIsExact(t *testing.T) {
	for _, of := range oddBuckets {
		rate, window, burst := of[0], of[1], of[2]
		t.Run(fmt.Sprintf("%d per %d, burst %d", rate, window, burst), func(t *testing.T) {
			play(t, bucket(t, rate, window, burst), func() model { return newVessel(rate, window, burst) })
		})
	}
}
