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
	"github.com/accesslimit/accesslimit/internal/scriptclock"
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
	op := algorithm.Op{Mode: algorithm.AllOrNone, Counters: []algorithm.Counter{counter}, Calls: 1}
	start, middle, end := boundsIn(op.Append(nil, at.UnixMicro())[0].(string))
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

// boundsIn returns the bounds in the argument of a step: those behind the units, the permits of one, and Max.
func boundsIn(arg string) (start, middle, end int64) {
	number := func(at int) (n int64) {
		for i := 6; i >= 0; i-- {
			n = n<<8 | int64(arg[7*at+i])
		}
		return n
	}
	return number(3), number(4), number(5)
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

// If a script receives the bounds of a day that is not today by Redis's clock, it says so. It charges neither
// this counter nor others, whether its rule is soft or not.
func TestCalendarBoundsOfAnotherTime(t *testing.T) {
	s := startServer(t)
	limit := algorithm.InCalendar(3, algorithm.NewCalendar("Europe/Berlin", location(t, "Europe/Berlin"), false))
	for _, tc := range []struct {
		cost          int64
		first, behind uint16
		off           int64
	}{{1, 0, 0, 2 * day}, {1, 0, 1, 2 * day}, {0, 0, 0, 2 * day}, {1, 0, 0, -day}, {0, 0, 1, -day}, {1, 1, 2, 2 * day}, {1, 1, 1, -day}} {
		a := ask{early, true, []algorithm.Counter{
			{Key: []byte("other"), Limit: new(algorithm.Windowed(algorithm.FixedWindow, 1, second)), Cost: 1, Behind: tc.first},
			{Key: []byte("calendar"), Limit: &limit, Cost: tc.cost, Behind: tc.behind},
		}}
		argv := a.op().Append(nil, early-tc.off)
		reply := s.Eval(context.Background(), timed(t, a.op().Script()), []string{"other", "calendar"}, append(argv, int64(early))...)
		if _, _, err := readOp(a.op(), reply.Val(), 0, 1); err != algorithm.ErrOtherDay || algorithm.OtherDay(scriptclock.Texts(reply.Val())) != early {
			t.Errorf("%+v: %v, %v", tc, reply, err)
		}
		if s.state("other") != "" || s.state("calendar") != "" {
			t.Errorf("%+v: charged", tc)
		}
	}
}

// A reply that asks for the bounds of another day is not recorded, so the op can be asked again.
func TestAnotherDayIsNotRecorded(t *testing.T) {
	s := startServer(t)
	limit := algorithm.InCalendar(3, algorithm.NewCalendar("UTC", time.UTC, false))
	op := algorithm.Op{Mode: algorithm.InDebt, Calls: 1, Share: 1, Record: []byte("record"), Counters: []algorithm.Counter{
		{Key: []byte("other"), Limit: new(algorithm.Windowed(algorithm.FixedWindow, 5, second)), Cost: 2}, {Key: []byte("calendar"), Limit: &limit, Cost: 1},
	}}
	for _, off := range []int64{2 * day, 0, 0} {
		reply := s.Eval(t.Context(), timed(t, op.Script()), keysOf(&op), append(op.Append(nil, early-off), int64(early))...)
		_, verdicts, err := readOp(&op, reply.Val(), 0, 1)
		if off > 0 && err != algorithm.ErrOtherDay || off == 0 && (err != nil || verdicts[0].Remaining != 3 || verdicts[1].Remaining != 2) {
			t.Errorf("%d: %+v, %v", off, verdicts, err)
		}
	}
}

// The bounds that a script receives are valid until their last microsecond, and no longer.
func TestCalendarBoundsEndWithTheNextDay(t *testing.T) {
	s := startServer(t)
	limit := algorithm.InCalendar(3, algorithm.NewCalendar("Europe/Berlin", location(t, "Europe/Berlin"), false))
	call := one("calendar", &limit, early, 1)
	argv := call.op().Append(nil, early)
	start, _, ends := boundsIn(argv[0].(string))
	for now, want := range map[int64]bool{start - 1: false, start: true, ends - 1: true, ends: false} {
		reply := s.Eval(context.Background(), timed(t, call.op().Script()), []string{"calendar"}, append(argv[:len(argv):len(argv)], now)...)
		if _, _, err := readOp(call.op(), reply.Val(), 0, 1); (err == nil) != want {
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
