package redisstore

import (
	"testing"
	"time"
)

// A call has at most as many keys as the server can decide in 250 µs by the samples so far, but at
// least 4 and at most 24.
func TestManySize(t *testing.T) {
	type sample struct {
		keys  int           // decided
		each  time.Duration // of them
		want  int           // keys per call then
		pause time.Duration // before them
	}
	few, many := int(sampleTime/time.Millisecond), int(sampleTime/(5*time.Microsecond))
	for _, test := range []struct {
		name    string
		samples []sample
	}{
		{"no sample yet", []sample{{1, time.Microsecond, firstKeys, 0}}},
		{"a fast server", []sample{{many, 5 * time.Microsecond, mostKeys, 0}}},
		{"a server that takes 20 µs for a key", []sample{{1000, 20 * time.Microsecond, 12, 0}}},
		{"a server that takes longer for a key than a call may hold it", []sample{{few, time.Millisecond, fewestKeys, 0}}},
		{"a pause says nothing about the server", []sample{{many, 5 * time.Microsecond, mostKeys, 0}, {1, time.Second / 2, mostKeys, 0}}},
		{"a server that becomes faster", []sample{{1000, 50 * time.Microsecond, 5, 0}, {1000, 25 * time.Microsecond, 10, 0}}},
		{"a server that becomes slower", []sample{
			{many, 5 * time.Microsecond, mostKeys, 0},
			{20_000, 50 * time.Microsecond, mostKeys, 0}, // a second
			{20_000, 50 * time.Microsecond, 5, 0},
		}},
		{"an idle process", []sample{{many, 5 * time.Microsecond, mostKeys, 0}, {9, 9, mostKeys, time.Minute}, {9, 9, mostKeys, time.Minute}}},
		{"an idle server", []sample{{1000, 50 * time.Microsecond, 5, 0}, {1, time.Minute, fewestKeys, 0}, {1000, 50 * time.Microsecond, 5, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m manySize
			if got := m.keys(); got != firstKeys {
				t.Errorf("%d keys at first, want %d", got, firstKeys)
			}
			now := time.Duration(0)
			for i, s := range test.samples {
				sent := now + s.pause
				now = sent + time.Duration(s.keys)*s.each
				m.observe(s.keys, sent, now)
				if got := m.keys(); got != s.want {
					t.Errorf("after sample %d: %d keys, want %d", i, got, s.want)
				}
			}
		})
	}
}
