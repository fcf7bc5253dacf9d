package redisstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// mixed is a set of keys that many callers use at once.
type mixed struct {
	name   string
	limits []*algorithm.Limit
	keys   int
	most   int64 // of each key
	passed []atomic.Int64
}

// mixOf returns keys whose counters have this many permits.
func mixOf(t testing.TB, name string, keys int, most int64) *mixed {
	m := &mixed{name: name, keys: keys, most: most, passed: make([]atomic.Int64, keys)}
	for _, limit := range limits(t, most) {
		m.limits = append(m.limits, limit)
	}
	return m
}

func (m *mixed) counter(key int) algorithm.Counter {
	return counter(fmt.Sprint(m.name, key), m.limits[key%len(m.limits)])
}

// use has a crowd take each key about this many times. Calls may fail only if mayFail is set.
func (m *mixed) use(t testing.TB, s store, times int, mayFail bool) {
	t.Helper()
	together(callers, func(i int) {
		for n := range m.keys * times / callers {
			key := (i + n*callers) % m.keys
			switch v := s.take(context.Background(), m.counter(key))[0]; {
			case passes(v):
				m.passed[key].Add(1)
			case v.RetryAfter == 0 && !mayFail:
				t.Errorf("%+v", v)
			}
		}
	})
}

// wantExact checks that each call that passed was charged, and no other, and that no key admitted
// more than its permits.
func (m *mixed) wantExact(t testing.TB, s store) {
	t.Helper()
	for key := range m.keys {
		c, passed := m.counter(key), m.passed[key].Load()
		if left := s.left(t, c); passed > m.most || left != m.most-passed {
			t.Errorf("%s: %d of %d calls passed, and %d are left", c.Key, passed, m.most, left)
		}
	}
}

// keepUsing uses a key set until a condition holds.
func keepUsing(t *testing.T, what string, s store, is func() bool) {
	t.Helper()
	round := 0
	wantSoon(t, what, func() bool {
		m := mixOf(t, fmt.Sprint(t.Name(), what, round), 256, 3)
		round++
		m.use(t, s, 1, false)
		return is()
	})
}
