package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/accesslimit/accesslimit/core"
)

// contender is one way to keep the counters.
type contender struct {
	name string
	// open returns a table of at most maxKeys keys, each with most permits per window.
	open func(maxKeys, most int, window time.Duration) table
}

type table interface {
	take(subject string) bool
	close()
}

var contenders = []contender{
	{"accesslimit", openLimiter}, {"otter v2", openOtter}, {"map and mutex, unbounded", openMap},
}

// limiter is the limiter as users call it.
type limiter struct {
	*core.Limiter
	counter core.Counter
}

func openLimiter(maxKeys, most int, window time.Duration) table {
	l, err := core.New(core.Options{MaxKeys: maxKeys, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	limit := core.Limit{Max: most, Window: window}
	return &limiter{l, l.MustCounter("api", limit.Bucket(most))}
}

func (l *limiter) take(subject string) bool {
	d, err := l.counter.Allow(context.Background(), subject)
	return err == nil && d.Allowed
}

func (l *limiter) close() { l.Close() }

// bucket is the limiter's token bucket for the simple case that the rate divides the window's
// microseconds, or is a multiple of them.
type bucket struct {
	mu       sync.Mutex
	at, used int64
}

// rate describes a bucket in units: how many it holds when full, how many a permit takes, and how
// many come back per microsecond.
type rate struct{ full, permit, refill int64 }

func rateOf(most int, window time.Duration) rate {
	n, micros := int64(most), window.Microseconds()
	permit, refill := max(1, micros/n), max(1, n/micros)
	return rate{n * permit, permit, refill}
}

var start = time.Now()

func (b *bucket) take(r *rate) bool {
	now := time.Since(start).Microseconds()
	b.mu.Lock()
	defer b.mu.Unlock()
	if now > b.at { // as in the limiter, a time read before the lock may have been overtaken
		b.used, b.at = max(0, b.used-(now-b.at)*r.refill), now
	}
	if b.used+r.permit > r.full {
		return false
	}
	b.used += r.permit
	return true
}

// cache is otter's cache. It drops a bucket one window after its last use, when the bucket is full.
type cache struct {
	*otter.Cache[string, *bucket]
	rate rate
}

func openOtter(maxKeys, most int, window time.Duration) table {
	return &cache{otter.Must(&otter.Options[string, *bucket]{
		MaximumSize: maxKeys, ExpiryCalculator: otter.ExpiryAccessing[string, *bucket](window),
	}), rateOf(most, window)}
}

func (c *cache) take(subject string) bool {
	b, ok := c.GetIfPresent(subject)
	if !ok {
		b, _ = c.SetIfAbsent(strings.Clone(subject), new(bucket)) // valid only during its request
	}
	return b.take(&c.rate)
}

func (c *cache) close() { c.StopAllGoroutines() }

// locked is a map that one mutex guards. Once a second it is searched for full buckets.
type locked struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	rate    rate
	window  time.Duration
	sweeper *time.Ticker
	done    chan struct{}
}

func openMap(_, most int, window time.Duration) table {
	l := &locked{
		buckets: map[string]*bucket{}, rate: rateOf(most, window), window: window, sweeper: time.NewTicker(time.Second), done: make(chan struct{}),
	}
	go l.sweep()
	return l
}

func (l *locked) take(subject string) bool {
	l.mu.Lock()
	b, ok := l.buckets[subject]
	if !ok {
		b = new(bucket)
		l.buckets[strings.Clone(subject)] = b
	}
	l.mu.Unlock()
	return b.take(&l.rate)
}

func (l *locked) sweep() {
	for {
		select {
		case <-l.done:
			return
		case <-l.sweeper.C:
		}
		l.mu.Lock()
		full := time.Since(start).Microseconds() - l.window.Microseconds()
		for subject, b := range l.buckets {
			b.mu.Lock()
			if b.at < full {
				delete(l.buckets, subject)
			}
			b.mu.Unlock()
		}
		l.mu.Unlock()
	}
}

func (l *locked) close() {
	l.sweeper.Stop()
	close(l.done)
}
