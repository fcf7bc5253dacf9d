package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// fuzzCounter is a counter as its key must tell it from all others.
type fuzzCounter struct {
	subject, name string
	dry           bool
	limit         core.Limit // none: the ban
}

var fuzzZones = [...]string{"UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "America/Argentina/Buenos_Aires"}

// newFuzzCounter makes a counter of whatever numbers come: the kind chooses the algorithm, a calendar, the ban, and whether it is
// only tried.
func newFuzzCounter(subject, name string, kind byte, window int64) fuzzCounter {
	const longest = int64(366 * 24 * time.Hour / time.Microsecond)
	c := fuzzCounter{subject: subject, name: name, dry: kind&16 != 0}
	span, zone := time.Duration(1000+uint64(window)%uint64(longest-999))*time.Microsecond, fuzzZones[uint64(window)%uint64(len(fuzzZones))]
	switch kind %= 16; {
	case kind <= uint8(core.Concurrency):
		c.limit = core.Limit{Max: 1, Window: span, Algorithm: core.Algorithm(kind)}
		if c.limit.Algorithm == core.Concurrency {
			c.limit.Window = max(c.limit.Window, time.Second)
		}
	case kind == 6:
		c.limit = core.PerCalendarDay(1, zone)
	case kind == 7:
		c.limit = core.PerCalendarMonth(1, zone)
	}
	return c
}

// fuzzPrefix is as long as a prefix may be, or no key would come near its 200 bytes.
var fuzzPrefix = strings.Repeat("p", 40)

func (c fuzzCounter) key() string {
	return core.RuleKey(fuzzPrefix, c.subject, c.name, c.dry, c.limit)
}

// slowly is the key as the documentation says it.
func (c fuzzCounter) slowly() string {
	name, dry, span := escapedSlowly(c.name), "", "bn1:0"
	if c.dry {
		dry = "%dry"
	}
	if c.limit != (core.Limit{}) {
		tag := [...]string{"sw1", "sl2", "fw1", "cw1", "tb2", "cc1"}[c.limit.Algorithm]
		span = fmt.Sprint(tag, ":", c.limit.Window.Microseconds())
		if unit, zone, ok := strings.Cut(c.limit.Calendar.String(), " of "); ok {
			if len(zone) > 21 {
				zone = "#" + core.Digest(zone)[:20]
			}
			span = tag + ":" + unit[:1] + zone
		}
	}
	head, tail := fuzzPrefix+":{"+escapedSlowly(c.subject)+"}:", dry+":"+span
	if len(head+name+tail) > 200 {
		name = "##" + core.Digest(name)
	}
	return head + name + tail
}

// FuzzCounterKey holds that a key is what its documentation says, of the one form that Redis and people can take, and that two
// counters never share one: not two subjects, names, algorithms, windows or calendars, nor a counter and the one beside which it is
// tried, nor a ban. The subject alone chooses the hash tag.
func FuzzCounterKey(f *testing.F) {
	add := func(subjectA, nameA, subjectB, nameB string) {
		f.Add(subjectA, nameA, byte(core.SlidingWindow), int64(60e6), subjectB, nameB, byte(core.SlidingWindow), int64(60e6))
	}
	add("user:alice", "reply", "user:bob", "reply")
	add("a}:b", "c", "a", "b}:c")
	add("%7D", "n", "}", "n")
	add(strings.Repeat("x", 65), "n", "#"+core.Digest(strings.Repeat("x", 65)), "n")
	add("s", "a:sw1:60000000", "s", "a")
	add("\xff\x00", "{", "\xff", "\x00{")
	for kind := range byte(32) {
		f.Add("s", "n", kind, int64(2), "s", "n", kind^16, int64(2))
		f.Add("s", "n", kind, int64(2), "s", "n", kind^1, int64(2))
		f.Add("s", "n", kind, int64(60e6), "s", "n:sw1", kind, int64(3))
		f.Add("s", "n%dry", kind, int64(60e6), "s", "n", kind, int64(-1))
	}
	for _, zone := range []int64{2, 3} { // long ones
		for _, kind := range []byte{6, 7, 16 + 6, 16 + 7} {
			for n := 61; n < 64; n++ { // the keys of rules in DryRun have 200 bytes, then 201
				f.Add(strings.Repeat("s", 64), strings.Repeat("n", n), kind, zone, strings.Repeat("s", 64), strings.Repeat("n", n+1), kind, zone)
			}
		}
	}
	f.Fuzz(func(t *testing.T, subjectA, nameA string, kindA byte, windowA int64, subjectB, nameB string, kindB byte, windowB int64) {
		if subjectA == "" || subjectB == "" || nameA == "" || nameB == "" {
			return // refused before a key is formed
		}
		a, b := newFuzzCounter(subjectA, nameA, kindA, windowA), newFuzzCounter(subjectB, nameB, kindB, windowB)
		for _, c := range []fuzzCounter{a, b} {
			if got, want := c.key(), c.slowly(); got != want {
				t.Errorf("%+v is %s, want %s", c, got, want)
			}
			if direct := core.RuleKey(fuzzPrefix, c.subject, c.name, false, core.PerDay(1)); direct != core.CounterKey(fuzzPrefix, c.subject, c.name, core.PerDay(1)) {
				t.Errorf("%+v has another key for rules: %s", c, direct)
			}
		}
		tagA, tagB := checkKey(t, a.key()), checkKey(t, b.key())
		if (a.key() == b.key()) != (a == b) {
			t.Errorf("%+v is %s, %+v is %s", a, a.key(), b, b.key())
		}
		if (tagA == tagB) != (subjectA == subjectB) {
			t.Errorf("%q has the tag %s, %q has %s", subjectA, tagA, subjectB, tagB)
		}
	})
}
