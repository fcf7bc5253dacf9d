package algorithm_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// steps is the largest number of steps of a trace.
const steps = 80

// several draws a number of steps. A failing trace shrinks to fewer.
func several(t *rapid.T) int { return rapid.IntRange(steps/4, steps).Draw(t, "steps") }

// eachFamily checks a property of traces: for each algorithm alone, and for all algorithms mixed.
func eachFamily(t *testing.T, property func(t *rapid.T, from []family)) {
	var mixed []family
	for name, from := range families(t) {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) { property(t, from) }))
		mixed = append(mixed, from...)
	}
	slices.SortFunc(mixed, func(a, b family) int { return strings.Compare(a.name, b.name) })
	t.Run("mixed", rapid.MakeCheck(func(t *rapid.T) { property(t, mixed) }))
}

// Both engines give the same answers to the microsecond, for any calls, while limits change and the
// clock steps back and forth.
func TestEnginesAgree(t *testing.T) {
	s := startServer(t)
	eachFamily(t, func(t *rapid.T, from []family) {
		c := newCaller(t, rapid.Bool().Draw(t, "jumps"), from)
		for range several(t) {
			c.step()
		}
		c.run(t, s, timed, nil)
	})
}

// The same holds in a Redis that drops every key when its time to live is over: the expiry of a key
// changes no answer. These traces avoid a lower rate, because a key lives by the rate under which it
// was written.
func TestEnginesAgreeWhenKeysExpire(t *testing.T) {
	s := startServer(t)
	eachFamily(t, func(t *rapid.T, from []family) {
		c := newCaller(t, false, from)
		c.steady()
		for range several(t) {
			c.step()
		}
		c.run(t, s, expiring, nil)
	})
}

// steady makes c avoid whatever lets a key expire before its state equals a fresh one.
func (c *caller) steady() {
	for _, m := range append(c.members, c.others...) {
		m.family.limits = slices.DeleteFunc(slices.Clone(m.family.limits), func(l *algorithm.Limit) bool { return !m.outlives(l) })
	}
}

// outlives reports whether a key that was written under the first limit of the family lives as long
// under this one.
func (m *member) outlives(l *algorithm.Limit) bool {
	first := m.family.limits[0]
	return l.Permit == first.Permit && l.Refill == first.Refill
}
