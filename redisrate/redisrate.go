// Package redisrate has the names and the results of github.com/go-redis/redis_rate/v10, on the
// counters of package core. To move a service from one to the other, replace the import:
//
//	import redis_rate "github.com/accesslimit/accesslimit/redisrate"
//
// The tests of redis_rate itself pass on it. These things differ:
//
//   - Counters start full at the switch, because their keys are others: they begin with redisrate:
//     in place of rate:, which matters for rights in Redis. A key is opaque: braces in it choose no
//     hash slot. While old and new processes run side by side, each kind has its own counts.
//   - Each Period of a key has a counter of its own, where redis_rate mixes up what it counts by
//     different ones. Reset forgets the usual Periods, and those that the Limiter was called with.
//   - Counts are exact, in integers. Remaining is what is left, also beside a refusal, where
//     redis_rate returns 0. AllowAtMost leaves the fraction of an event that has come back, which
//     redis_rate takes too.
//   - A Rate or a Burst below 1 is an error; redis_rate refuses everything for a Burst of 0. So is
//     a Period that is not 1 ms to 366 days, in whole microseconds, and a Burst that takes decades
//     to come back.
//   - A negative n is an error. redis_rate gives back events for it: see core.Limiter.Refund.
//   - A call returns by its context's deadline, which go-redis ignores by default, or within three
//     seconds, and is counted at most once. After a quarter of a second without any answer of
//     Redis, calls fail at once until it answers. The error is then a *core.StoreError.
//   - A process repeats a refusal that still holds for up to a second without asking Redis. Until
//     then, it does not notice a Reset by another process.
//   - The client is a redis.UniversalClient of go-redis v9, and Redis is 6.2 or later.
package redisrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
)

const (
	// prefix differs from rate, with which the keys of redis_rate begin. With the same prefix, a
	// caller's key there could be a counter's key here.
	prefix = "redisrate"
	// name is the name of the counters.
	name = "redis_rate"
	// timeout is how long go-redis waits for a reply by default.
	timeout = 3 * time.Second
)

// Limiter controls how frequently events are allowed to happen. Make one with [NewLimiter] or
// [From] when the service starts. It is a small value, safe for concurrent use.
type Limiter struct {
	limiter  *core.Limiter
	counters *sync.Map // by Period: a core.Counter
}

// NewLimiter returns a Limiter whose counters are in Redis. It panics if the client is nil.
func NewLimiter(rdb redis.UniversalClient) *Limiter {
	if rdb == nil {
		panic("redisrate: NewLimiter needs a client")
	}
	limiter, err := core.New(core.Options{Redis: rdb, Prefix: prefix, Timeout: timeout})
	if err != nil {
		panic(err)
	}
	return From(limiter)
}

// From returns a Limiter whose counters are those of a core.Limiter, with its prefix, its timeout,
// its metrics and its log. There they have the name redis_rate.
func From(limiter *core.Limiter) *Limiter {
	l := &Limiter{limiter, new(sync.Map)}
	for _, period := range []time.Duration{time.Second, time.Minute, time.Hour} {
		_, _ = l.counter(Limit{Rate: 1, Burst: 1, Period: period}) // so that Reset reaches it
	}
	return l
}

// Allow is a shortcut for AllowN(ctx, key, limit, 1).
func (l Limiter) Allow(ctx context.Context, key string, limit Limit) (*Result, error) {
	return l.AllowN(ctx, key, limit, 1)
}

// AllowN reports whether n events may happen now. If they may, they are counted, and Allowed is n;
// otherwise nothing is counted, and Allowed is 0. If n is more than Burst, it is always refused.
func (l Limiter) AllowN(ctx context.Context, key string, limit Limit, n int) (*Result, error) {
	counter, err := l.counter(limit)
	if err != nil {
		return nil, err
	}
	d, err := counter.AllowN(ctx, subject(key), n)
	if errors.Is(err, core.ErrCostExceedsLimit) {
		return neverAllowed(ctx, counter, key, limit, n)
	}
	if !d.Allowed {
		n = 0
	}
	return result(limit, n, &d, err)
}

// AllowAtMost counts as many of n events as may happen now, and returns their number in Allowed.
func (l Limiter) AllowAtMost(ctx context.Context, key string, limit Limit, n int) (*Result, error) {
	counter, err := l.counter(limit)
	if err != nil {
		return nil, err
	}
	if n == 0 { // core would return no RetryAfter
		d, err := counter.Peek(ctx, subject(key))
		return result(limit, 0, &d, err)
	}
	granted, d, err := counter.AllowUpTo(ctx, subject(key), n)
	return result(limit, granted, &d, err)
}

// Reset forgets what was counted for a key under limits per second, per minute and per hour, and
// with any other Period with which this Limiter was called.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	all, err := l.allPeriods()
	if err == nil {
		_, err = all.Reset(ctx, subject(key))
	}
	return err
}

// subject returns the subject of a key. Its prefix lets a key be empty, or an address.
func subject(key string) string { return "rate:" + key }

var errNeverMade = errors.New("redisrate: the Limiter was never made: use NewLimiter")

// counter returns the counter of a limit.
func (l *Limiter) counter(limit Limit) (core.Counter, error) {
	switch {
	case l.limiter == nil:
		return core.Counter{}, errNeverMade
	case limit.Rate < 1 || limit.Burst < 1:
		return core.Counter{}, fmt.Errorf("redisrate: %v is not a limit: Rate and Burst must be at least 1", limit)
	}
	counter, known := l.counters.Load(limit.Period)
	if !known {
		made, err := l.limiter.Counter(name, core.Per(1, limit.Period).Bucket(1))
		if err != nil {
			return core.Counter{}, err
		}
		counter, _ = l.counters.LoadOrStore(limit.Period, made)
	}
	return counter.(core.Counter).With(core.Per(limit.Rate, limit.Period).Bucket(limit.Burst)), nil
}

// allPeriods returns a counter that stands for all Periods, for Reset.
func (l *Limiter) allPeriods() (core.Counter, error) {
	if l.limiter == nil {
		return core.Counter{}, errNeverMade
	}
	var limits []core.Limit
	l.counters.Range(func(period, _ any) bool {
		limits = append(limits, core.Per(1, period.(time.Duration)).Bucket(1))
		return true
	})
	return l.limiter.Counter(name, limits[0], limits[1:]...)
}
