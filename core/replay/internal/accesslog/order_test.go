package accesslog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// logOf returns a log of calls that were written at these offsets, in seconds, and took so long. The path
// of each is its number in the log.
func logOf(t *testing.T, zone *time.Location, counts *Counts, lines ...string) *Log {
	t.Helper()
	f, err := ParseFormat(`$time_iso8601 $request_time $request`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		lines[i] = fmt.Sprintf("%s GET /%d HTTP/1.1", line, i)
	}
	l, err := Open("log", strings.NewReader(strings.Join(lines, "\n")), f, zone, counts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// order returns the paths and times of merged calls; a late call ends in !.
func order(logs ...*Log) (text string, m *Merged) {
	m = Merge(logs, true)
	var all []string
	for c := m.Next(); c != nil; c = m.Next() {
		one := c.URI[1:] + "@" + time.UnixMicro(c.Began).UTC().Format("15:04:05.999")
		if c.Late {
			one += "!"
		}
		all = append(all, one)
	}
	return strings.Join(all, " "), m
}

func TestOrder(t *testing.T) {
	const day = "2026-11-22T"
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"by when calls began", []string{"10:00:05.000Z 0.100", "10:00:05.050Z 0.020", "10:00:06.000Z 5.500"}, "2@10:00:00.5 0@10:00:04.9 1@10:00:05.03"},
		{"in the order of the log", []string{"10:00:05Z 0", "10:00:05Z 0.300", "10:00:05Z 0"}, "0@10:00:05 1@10:00:05 2@10:00:05"},
		{"up to a minute late", []string{"10:01:00Z 0", "10:00:01Z 0", "10:01:01Z 0"}, "1@10:00:01 0@10:01:00 2@10:01:01"},
		{"one that is later", []string{"10:05:00Z 0", "10:00:01Z 0", "10:05:01Z 0"}, "1@10:04:00! 0@10:05:00 2@10:05:01"},
		{"a call of two hours", []string{"12:00:00Z 0", "12:00:01Z 7200", "12:00:02Z 0"}, "1@11:59:01! 0@12:00:00 2@12:00:02"},
		{"the last one is late", []string{"12:00:00Z 0", "11:00:00Z 0"}, "1@11:59:00! 0@12:00:00"},
		{"a jump ahead", []string{"10:00:00Z 0", "18:00:00Z 0", "18:00:01Z 0"}, "0@10:00:00 1@18:00:00 2@18:00:01"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i := range test.lines {
				test.lines[i] = day + test.lines[i]
			}
			if got, m := order(logOf(t, time.UTC, new(Counts), test.lines...)); got != test.want || len(m.Steps()) > 0 {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A clock that goes back for good moves what follows, also one of local time when summer time ends.
func TestClockGoesBack(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		zone  *time.Location
		lines []string
		want  string
		back  time.Duration
	}{
		{"set back", time.UTC, []string{"2026-11-22T10:00:00Z 0", "2026-11-22T09:00:00Z 0", "2026-11-22T09:00:05Z 0", "2026-11-22T09:30:00Z 0"},
			"0@10:00:00 1@10:00:00 2@10:00:05 3@10:30:00", time.Hour},
		{"summer time ends", berlin, []string{"2026-10-25T02:59:59 0", "2026-10-25T02:00:00 0", "2026-10-25T02:00:30 0", "2026-10-25T02:59:59 0", "2026-10-25T03:00:00 0"},
			"0@01:59:59 1@01:59:59 2@02:00:29 3@02:59:58 4@02:59:59", time.Hour - time.Second},
		{"from the year 2199", time.UTC, []string{"2199-01-01T00:00:00Z 0", "2026-11-22T09:00:00Z 0", "2026-11-22T09:00:05Z 0"},
			"0@00:00:00 1@00:00:00 2@00:00:05", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, m := order(logOf(t, test.zone, new(Counts), test.lines...))
			if got != test.want || len(m.Steps()) != 1 {
				t.Fatalf("got  %s\nwant %s, %v", got, test.want, m.Steps())
			}
			if test.back > 0 && m.Steps()[0].Back != test.back.Microseconds() {
				t.Errorf("steps %v", m.Steps())
			}
		})
	}
}

func TestMerge(t *testing.T) {
	var counts Counts
	a := logOf(t, time.UTC, &counts, "2026-11-22T10:00:00Z 0", "2026-11-22T10:00:04Z 0")
	b := logOf(t, time.UTC, &counts)
	c := logOf(t, time.UTC, &counts, "2026-11-22T10:00:03.5Z 0", "2026-11-22T10:00:02Z 0", "2026-11-22T10:00:09Z 0")
	if got, m := order(a, b, c); got != "0@10:00:00 1@10:00:02 0@10:00:03.5 1@10:00:04 2@10:00:09" || m.Unit() != 1e6 {
		t.Errorf("%s, a clock of %d", got, m.Unit())
	}
	if counts.Calls != 5 {
		t.Errorf("%+v", counts)
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"1795341601":                    "2026-11-22T10:00:01Z",
		"1795341601.250":                "2026-11-22T10:00:01.25Z",
		"1795341601250":                 "2026-11-22T10:00:01.25Z",
		"1795341601250123":              "2026-11-22T10:00:01.250123Z",
		"1795341601250123456":           "2026-11-22T10:00:01.250123Z",
		"2026/11/22 10:00:01":           "2026-11-22T10:00:01Z",
		"22/Nov/2026:10:00:01.250":      "2026-11-22T10:00:01.25Z",
		"2026-11-22 10:00:01,250":       "2026-11-22T10:00:01.25Z",
		"2026-11-22T10:00:01.250+0000":  "2026-11-22T10:00:01.25Z",
		"Sun, 22 Nov 2026 10:00:01 GMT": "2026-11-22T10:00:01Z",
		"1.7e9":                         "",
		"10:00:01":                      "",
		"1e400":                         "",
		"99999999999999999999":          "",
		"0":                             "",
	} {
		p := newClock(time.UTC)
		micros, err := p.time(text)
		if got := time.UnixMicro(micros).UTC().Format(time.RFC3339Nano); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]int64{"0.005": 5000, "1.5ms": 1500, "2": 2e6, "-1": 0, "x": 0, "9999999999999999999": 0, "8e9": 0, "99999999": maxTook} {
		if got := took(text, 6); got != want {
			t.Errorf("took %q: %d, want %d", text, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	texts := []string{"192.0.2.1", "192.0.2.1:80", "[2001:db8::1]:443", "2001:db8::1", "203.0.113.9, 192.0.2.1", "unix:", "host.example", "::ffff:192.0.2.1"}
	want := "192.0.2.1 192.0.2.1 2001:db8::1 2001:db8::1 192.0.2.1 invalid IP invalid IP ::ffff:192.0.2.1"
	var got []string
	for _, text := range texts {
		got = append(got, addressOf(text).String())
	}
	if strings.Join(got, " ") != want || slices.Contains(got, "") {
		t.Errorf("%v", got)
	}
}
