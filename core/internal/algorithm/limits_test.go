package algorithm_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// family is a group of limits with one algorithm and window, which share a key. A trace changes
// between them.
type family struct {
	name    string
	limits  []*algorithm.Limit
	window  int64   // about how long a charge counts
	moments []int64 // at which answers are likely to change
}

// families returns the limits for which both engines must agree, by algorithm. An algorithm without
// limits of its own here counts in windows.
func families(t *testing.T) map[string][]family {
	all := map[string][]family{
		"token bucket": buckets(t),
		"concurrency":  windowed(algorithm.Concurrency, 3, 1, 2, 8),
	}
	for _, kind := range algorithm.Kinds() {
		p := kind.Properties()
		name := strings.ReplaceAll(p.File, "_", " ")
		if all[name] == nil && kind.Limits() {
			all[name] = windowed(kind, 5, 1, 12, 100, min(600_000, largest(kind)), largest(kind))
		}
		if p.Calendar {
			all[name] = append(all[name], calendars(t)...)
		}
	}
	return all
}

// largest returns the largest Max of an algorithm.
func largest(kind algorithm.Kind) int64 {
	return cmp.Or(kind.Properties().MaxPermits, algorithm.MaxEntries)
}

func windowed(kind algorithm.Kind, most ...int64) (all []family) {
	for _, window := range windows {
		f := family{name: fmt.Sprintf("%s of %d", kind.Tag(), window), window: window}
		for _, n := range most {
			f.limits = append(f.limits, new(algorithm.Windowed(kind, n, window)))
		}
		all = append(all, f)
	}
	return all
}

// zoned are zones whose days are not all alike, and what the year is in which these tests live is
// far from any table of them.
var zoned = []string{"UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut", "America/Asuncion", "Australia/Lord_Howe", "Asia/Kathmandu"}

func calendars(t *testing.T) (all []family) {
	for i, name := range zoned {
		zone := location(t, name)
		f := family{name: "days of " + name, window: day, moments: transitions(zone, early, 6)}
		month := i%2 == 1
		if month {
			f.name, f.window = "months of "+name, 31*day
		}
		calendar := algorithm.NewCalendar(name, zone, month)
		for _, most := range []int64{5, 1, 100} {
			f.limits = append(f.limits, new(algorithm.InCalendar(most, calendar)))
		}
		all = append(all, f)
	}
	return all
}

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// transitions returns the next moments, at most this many, at which the clocks of a zone change.
func transitions(zone *time.Location, from int64, most int) (moments []int64) {
	at := time.UnixMicro(from).In(zone)
	for range most {
		_, changes := at.ZoneBounds()
		if changes.IsZero() {
			break
		}
		moments, at = append(moments, changes.UnixMicro()), changes
	}
	return moments
}

func buckets(t failer) (all []family) {
	for i, of := range oddBuckets {
		rate, window, burst := of[0], of[1], of[2]
		f := family{name: fmt.Sprintf("bucket %d", i), limits: []*algorithm.Limit{new(bucket(t, rate, window, burst))}, window: window}
		others := [][2]int64{
			{rate, 2*burst + 1}, {1 + rate/3, 1 + burst/2}, {rate + rate/2 + 1, burst}, {rate + rate/2, burst},
			{rate, largestBurst(rate, window)}, {1, 1},
		}
		for _, other := range others {
			// Most of these limits count in different units.
			if limit, err := algorithm.Bucketed(other[0], window, other[1]); err == nil {
				f.limits = append(f.limits, &limit)
			}
		}
		all = append(all, f)
	}
	return all
}
