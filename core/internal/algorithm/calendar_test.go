package algorithm_test

import (
	"archive/zip"
	"context"
	"fmt"
	"go/build"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// eachZone runs a test for every zone of the tz database, except for those that are another name of
// a zone.
func eachZone(t *testing.T, do func(t *testing.T, zone *time.Location, changes []time.Time)) {
	t.Helper()
	file := filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip")
	names, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	known := make(map[string]bool)
	for _, f := range names.File {
		zone, err := time.LoadLocation(f.Name)
		if err != nil {
			continue // a folder
		}
		changes := changesOf(zone)
		if clocks := fmt.Sprint(changes); !known[clocks] {
			known[clocks] = true
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				do(t, zone, changes)
			})
		}
	}
	if len(known) < 250 {
		t.Errorf("%d zones, in 2026 there were some 300 with clocks of their own", len(known))
	}
}

// changesOf returns the moments at which the clocks of a zone change, past and future.
func changesOf(zone *time.Location) (changes []time.Time) {
	last := time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)
	at := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).In(zone)
	for at.Before(last) {
		changes = append(changes, at)
		_, next := at.ZoneBounds()
		if next.IsZero() {
			break
		}
		// For the last day of a leap year, ZoneBounds can return an end before the beginning.
		if !next.After(at) {
			next = at.AddDate(0, 0, 2)
		}
		at = next
	}
	return changes
}

// dates is the history of a zone's clocks, with an increasing number for each day or month.
type dates struct {
	zone    *time.Location
	month   bool
	changes []time.Time
}

func (d dates) number(at time.Time) int {
	year, month, day := at.In(d.zone).Date()
	if d.month {
		return 100*year + int(month)
	}
	return 10000*year + 100*int(month) + day
}

// begin returns the first moment after from that shows this date, or a later one if the zone left
// it out. Between two changes no clock goes back, so a binary search finds it there.
func (d dates) begin(number int, from time.Time) int64 {
	for {
		to := from.AddDate(0, 0, 70)
		next, found := slices.BinarySearchFunc(d.changes, from, time.Time.Compare)
		if found {
			next++
		}
		if next < len(d.changes) && d.changes[next].Before(to) {
			to = d.changes[next]
		}
		within := int(to.Unix() - from.Unix())
		if first := sort.Search(within, func(s int) bool { return d.number(time.Unix(from.Unix()+int64(s), 0)) >= number }); first < within {
			return (from.Unix() + int64(first)) * second
		}
		from = to
	}
}

// check compares the bounds that scripts receive for a moment with the dates that the clocks
// showed.
func (d dates) check(t *testing.T, at time.Time) {
	t.Helper()
	limit := algorithm.InCalendar(1, algorithm.NewCalendar("", d.zone, d.month)) // one that remembers no other day
	counter := algorithm.Counter{Limit: &limit}
	args := algorithm.AppendEqual(nil, []algorithm.Counter{counter}, 1, at.UnixMicro())
	start, middle, end := args[4].(int64), args[5].(int64), args[6].(int64)
	if start > at.UnixMicro() || at.UnixMicro() >= middle {
		t.Fatalf("%v does not lie between %v and %v", at, d.show(start), d.show(middle))
	}
	before := time.UnixMicro(start).AddDate(0, 0, -3)
	number := d.number(time.UnixMicro(start))
	if want := d.begin(number, before); start != want {
		t.Fatalf("what %v lies in began at %v, not at %v", at, d.show(want), d.show(start))
	}
	for _, got := range []int64{middle, end} {
		if want := d.begin(number+1, before); got != want {
			t.Fatalf("what follows %d, for %v, begins at %v, not at %v", number, at, d.show(want), d.show(got))
		}
		number = d.number(time.UnixMicro(got))
	}
}

func (d dates) show(at int64) time.Time { return time.UnixMicro(at).In(d.zone) }

// However a zone changed its clocks, every moment is in one day and in one month. These begin with
// the first moment that shows their date, and end with the first one that shows a later date.
func TestCalendarsOfAllZones(t *testing.T) {
	eachZone(t, func(t *testing.T, zone *time.Location, changes []time.Time) {
		for _, month := range []bool{false, true} {
			d := dates{zone, month, changes}
			for _, change := range changes[1:] {
				for _, after := range []time.Duration{-time.Microsecond, 0, 30 * time.Minute, 24 * time.Hour} {
					d.check(t, change.Add(after))
				}
			}
			for year := 1990; year < 2060; year += 5 {
				d.check(t, time.Date(year, 2, 28, 23, 59, 59, 999_999_999, zone))
				d.check(t, time.Date(year, 12, 31, 0, 0, 0, 0, zone))
			}
		}
	})
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

// The end of a key says how long a window of its counter lasts at most, if that ends by the wall clock.
func TestLongestByWall(t *testing.T) {
	for name, want := range map[string]int64{"d": 25 * hour, "m": 31*24*hour + hour} {
		limit := algorithm.InCalendar(1, algorithm.NewCalendar(name+"Europe/Berlin", time.UTC, name == "m"))
		if got := algorithm.LongestByWall("}:n:" + limit.Span()); got < want || got > 2*want {
			t.Errorf("%s: %d, want at least %d", limit.Span(), got, want)
		}
	}
	for kind, want := range map[algorithm.Kind]int64{algorithm.CalendarWindow: hour, algorithm.FixedWindow: 0} {
		limit := algorithm.Windowed(kind, 1, hour)
		if got := algorithm.LongestByWall("}:n:" + limit.Span()); got != want {
			t.Errorf("%s: %d, want %d", limit.Span(), got, want)
		}
	}
	if got := algorithm.LongestByWall("no key"); got != 0 {
		t.Errorf("of no key: %d", got)
	}
}
