package core_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// clock is a test's own time, in microseconds since the epoch. It starts at the beginning of a UTC
// day.
type clock struct{ now atomic.Int64 }

const dayOne = 20_000 * 24 * time.Hour

func (c *clock) add(d time.Duration) { c.now.Add(d.Microseconds()) }

// atTestTime makes a limiter that counts in this process by a clock of the test's own.
func atTestTime(t testing.TB, options core.Options) (*core.Limiter, *clock) {
	t.Helper()
	limiter, c := newLimiter(t, options), new(clock)
	c.add(dayOne)
	core.UseClock(limiter, c.now.Load)
	return limiter, c
}

// lasting are limits whose counters do not change by themselves while a test runs.
func lasting(n int) map[string]core.Limit {
	return map[string]core.Limit{
		"sliding":  core.PerHour(n),
		"log":      {Max: n, Window: time.Hour, Algorithm: core.SlidingLog},
		"fixed":    {Max: n, Window: time.Hour, Algorithm: core.FixedWindow},
		"calendar": {Max: n, Window: 366 * 24 * time.Hour, Algorithm: core.CalendarWindow},
		"month":    core.PerCalendarMonth(n, "Pacific/Auckland"),
		"bucket":   core.PerDay(1).Bucket(n),
	}
}

// eachLasting runs a test for each of them on both engines.
func eachLasting(t *testing.T, n int, test func(t *testing.T, limiter *core.Limiter, limit core.Limit)) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		limiter := newLimiter(t, options)
		for name, limit := range lasting(n) {
			t.Run(name, func(t *testing.T) { test(t, limiter, limit) })
		}
	})
}

// charge asks for n permits, which are there.
func charge(t testing.TB, limiter *core.Limiter, name, subject string, limit core.Limit, n int) core.Decision {
	t.Helper()
	d, err := limiter.MustCounter(name, limit).AllowN(background, subject, n)
	if err != nil || !d.Allowed {
		t.Fatalf("AllowN(%q, %q, %v, %d): %+v, %v", name, subject, limit, n, d, err)
	}
	return d
}

// serve is one call of a guard whose handler, if it runs, ends with this status. It returns what
// the caller gets.
func serve(guard *core.Guard, v core.View, ends int) int {
	answer := guard.Check(v)
	if answer.Refusal != nil {
		return answer.Refusal.Status
	}
	answer.Run(func() int { return ends })
	return ends
}

// wantServed checks what the callers of several calls get.
func wantServed(t testing.TB, guard *core.Guard, v core.View, ends int, want ...int) {
	t.Helper()
	for i, status := range want {
		if got := serve(guard, v, ends); got != status {
			t.Fatalf("call %d that would end with %d: status %d, want %d", i+1, ends, got, status)
		}
	}
}

const ok = http.StatusOK

// leaving is the same call by a caller who leaves when told to.
func leaving(v *fakeView) (_ *fakeView, leave func()) {
	v.ctx, leave = context.WithCancel(background)
	return v, leave
}
