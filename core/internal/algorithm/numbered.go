package algorithm

import (
	"fmt"
	"strconv"

	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// never bounds the times that are stored, so that a double holds them exactly.
const never = 1 << 53

// LatestTime is above all times and positions that are stored.
const LatestTime = never

// Forever is the RetryAfter of a call that never passes, however long it waits: its subject is
// blocked without an end, or its cost is above the limit of a soft rule.
const Forever = never

// LargestCost stands for the largest cost that fits into the limits of a rule.
const LargestCost = 1<<63 - 1

// Span returns the algorithm and the window of the limit, as at the end of its counters' keys, or
// "" for a limit that has no counters.
func (l *Limit) Span() string {
	span, _ := l.span.(string)
	return span
}

// appendSpan appends ALGORITHM:WINDOW.
func (l *Limit) appendSpan(dst []byte) []byte {
	dst = append(append(dst, l.Kind.Tag()...), ':')
	if l.calendar != nil {
		return append(dst, l.calendar.Name...)
	}
	return strconv.AppendInt(dst, l.Window, 10)
}

// With returns the limit with other numbers. A limit without a burst ignores burst. The error says
// that the limit cannot be counted exactly.
func (l *Limit) With(maxPermits, burst int64) (Limit, error) {
	of := l.Properties()
	most := l.mostPermits()
	if maxPermits < 1 || maxPermits > most || of.Burst && (burst < 1 || burst > MaxPermits) {
		return Limit{}, fmt.Errorf("is not a number of 1 to %d", most)
	}
	return Make(l.Kind, Terms{Max: maxPermits, Burst: burst, Window: l.Window, Calendar: l.calendar})
}

// mostPermits returns the largest Max of the limit's algorithm.
func (l *Limit) mostPermits() int64 {
	if most := l.Properties().MaxPermits; most > 0 {
		return most
	}
	return MaxEntries
}

// made caches the limits of counters that several rules share, because every call needs them. Beyond
// maxMade, limits are made anew each time.
var made cowmap.Map[madeLimit, *Limit]

type madeLimit struct {
	span       string
	max, burst int64
}

const maxMade = 1000

// Numbered returns a limit with other numbers, or nil if it cannot be counted exactly. It is cached.
func (l *Limit) Numbered(maxPermits, burst int64) *Limit {
	key := madeLimit{l.Span(), maxPermits, burst}
	if known, ok := made.Get(key); ok {
		return known
	}
	limit, err := l.With(maxPermits, burst)
	if err != nil {
		return nil
	}
	kept, _ := made.Add(key, &limit, maxMade)
	return kept
}
