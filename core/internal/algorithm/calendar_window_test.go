package algorithm_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// pages models a calendar window: it has a page for each date, or for each window since the epoch,
// and notes on it the permits used.
type pages struct {
	most int64
	page func(at int64) int64
	used map[int64]int64
	span int64 // longer than any page
}

// turns returns the time until the next page. It searches backward from a moment that is on another
// page.
func (p *pages) turns(now int64) int64 {
	low, high := int64(0), p.span
	for low+1 < high {
		if middle := (low + high) / 2; p.page(now+middle) == p.page(now) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

func (p *pages) check(t failer, now, cost int64, v algorithm.Verdict) {
	t.Helper()
	page := p.page(now)
	want := algorithm.Verdict{At: now}
	if p.used[page]+cost > p.most {
		want.RetryAfter = p.turns(now)
	} else {
		p.used[page] += cost
		want.Taken = cost
	}
	want.Remaining = p.most - p.used[page]
	if p.used[page] > 0 {
		want.ResetAfter = p.turns(now)
	}
	if v != want {
		t.Errorf("got %+v, want %+v", v, want)
	}
}

// Each day and month of a zone has its own permits, also on the days on which its clocks change.
func TestCalendarWindowFollowsItsZone(t *testing.T) {
	for _, name := range zoned {
		zone := location(t, name)
		for month, span := range map[bool]int64{false: 26 * hour, true: 32 * day} {
			limit := algorithm.InCalendar(3, algorithm.NewCalendar(name, zone, month))
			page := func(at int64) int64 { return int64(dates{zone: zone, month: month}.number(time.UnixMicro(at))) }
			changes := append(transitions(zone, early, 4), early)
			t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
				p := pages{3, page, make(map[int64]int64), span}
				c, now, last := counter{limit: limit}, rapid.SampledFrom(changes).Draw(t, "change")-upTo(t, 2*day, "before"), algorithm.Verdict{}
				for range several(t) / 2 {
					now += later(t, day, last)
					cost := 1 + upTo(t, 2, "cost")
					last = c.decide(now, cost)
					p.check(t, now, cost, last)
					wantHonest(t, &c, now, cost, last)
				}
			}))
		}
	}
}

// If a script receives the bounds of a day that is not today by Redis's clock, it replies with the
// time only. It charges neither this counter nor others, dry or not.
func TestCalendarBoundsOfAnotherTime(t *testing.T) {
	s := startServer(t)
	limit := algorithm.InCalendar(3, algorithm.NewCalendar("Europe/Berlin", location(t, "Europe/Berlin"), false))
	for _, tc := range []struct {
		cost int64
		dry  bool
		off  int64
	}{{1, false, 2 * day}, {1, true, 2 * day}, {0, false, 2 * day}, {1, false, -day}, {0, true, -day}} {
		a := ask{early, true, []algorithm.Counter{
			{Key: []byte("other"), Limit: new(algorithm.Windowed(algorithm.FixedWindow, 1, second)), Cost: 1},
			{Key: []byte("calendar"), Limit: &limit, Cost: tc.cost, Lenient: tc.dry},
		}}
		argv := algorithm.AppendDecide(nil, a.counters, true, early-tc.off)
		reply, err := s.Eval(context.Background(), timed(t, algorithm.DecideScript(a.counters)), []string{"other", "calendar"}, append(argv, int64(early))...).Int64Slice()
		if err != nil || len(reply) != 1 || reply[0] != early {
			t.Errorf("%+v: %v, %v", tc, reply, err)
		}
		if s.state("other") != "" || s.state("calendar") != "" {
			t.Errorf("%+v: charged", tc)
		}
	}
}

// The bounds that a script receives are valid until their last microsecond, and no longer.
func TestCalendarBoundsEndWithTheNextDay(t *testing.T) {
	s := startServer(t)
	limit := algorithm.InCalendar(3, algorithm.NewCalendar("Europe/Berlin", location(t, "Europe/Berlin"), false))
	counter := algorithm.Counter{Key: []byte("calendar"), Limit: &limit, Cost: 1}
	argv := algorithm.AppendDecide(nil, []algorithm.Counter{counter}, true, early)
	start, ends := argv[4].(int64), argv[6].(int64)
	for now, want := range map[int64]bool{start - 1: false, start: true, ends - 1: true, ends: false} {
		script := timed(t, algorithm.DecideScript([]algorithm.Counter{counter}))
		reply, err := s.Eval(context.Background(), script, []string{"calendar"}, append(argv[:len(argv):len(argv)], now)...).Int64Slice()
		if decided := len(reply) > 1 && reply[1] == 0; err != nil || decided != want {
			t.Errorf("%d after the start: %v, %v", now-start, reply, err)
		}
		s.FlushDB(context.Background())
	}
}
