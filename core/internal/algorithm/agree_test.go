package algorithm_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// steps is how many a trace has at most.
const steps = 80

// several is a number of steps, which shrinks.
func several(t *rapid.T) int { return rapid.IntRange(steps/4, steps).Draw(t, "steps") }

// eachFamily runs a property of traces: for each algorithm, alone and watched by bans, and for all
// of them mixed.
func eachFamily(t *testing.T, property func(t *rapid.T, from, watchers []family)) {
	all := families(t)
	var mixed []family
	for name, from := range all {
		if name != "ban" {
			t.Run(name, rapid.MakeCheck(func(t *rapid.T) { property(t, from, nil) }))
			mixed = append(mixed, from...)
		}
	}
	slices.SortFunc(mixed, func(a, b family) int { return strings.Compare(a.name, b.name) })
	t.Run("mixed", rapid.MakeCheck(func(t *rapid.T) { property(t, mixed, all["ban"]) }))
}

// Both engines give the same answers to the microsecond, whatever is asked, however the limits
// change, and when the clock steps back and forth.
func TestEnginesAgree(t *testing.T) {
	s := startServer(t)
	eachFamily(t, func(t *rapid.T, from, watchers []family) {
		c := newCaller(t, rapid.Bool().Draw(t, "jumps"), from, watchers)
		for range several(t) {
			c.step()
		}
		c.run(t, s, timed, nil)
	})
}

// The same in a Redis that drops every key at its time: a key's expiry changes no answer. Only a
// lowered rate must not be asked for, because a key lives by the rate that it was written under,
// and so with bans; nor must anybody be banned by hand, because that cannot tell what was
// forgotten.
func TestEnginesAgreeWhenKeysExpire(t *testing.T) {
	s := startServer(t)
	eachFamily(t, func(t *rapid.T, from, watchers []family) {
		c := newCaller(t, false, from, watchers)
		c.steady()
		for range several(t) {
			c.step()
		}
		c.run(t, s, expiring, nil)
	})
}

// steady leaves out what makes a key live shorter than its state counts.
func (c *caller) steady() {
	c.lenient = true
	for _, m := range c.members {
		m.family.limits = slices.DeleteFunc(slices.Clone(m.family.limits), func(l *algorithm.Limit) bool { return !m.outlives(l) })
	}
}

// outlives reports whether a key that was written under the first limit of the family lives as long
// under this one.
func (m *member) outlives(l *algorithm.Limit) bool {
	first := m.family.limits[0]
	if l.Kind == algorithm.Ban {
		return l == first
	}
	return l.Permit == first.Permit && l.Refill == first.Refill
}
