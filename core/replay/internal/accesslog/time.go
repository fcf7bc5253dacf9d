package accesslog

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// clock reads the times of one log. It remembers the last time, because most lines have the same as
// the line before, and the layout that fitted.
type clock struct {
	zone   *time.Location // of times without one
	unit   int64          // the smallest unit seen, in microseconds
	layout int
	text   string
	micros int64
}

func newClock(zone *time.Location) clock { return clock{zone: zone, unit: 1_000_000} }

// layouts are the forms of times in logs. Fractions of a second are read behind any of them.
var layouts = []string{
	"02/Jan/2006:15:04:05 -0700", // Common, nginx's $time_local
	"02/Jan/2006:15:04:05",       // HAProxy
	time.RFC3339,
	"2006-01-02T15:04:05Z0700", // Caddy's iso8601
	"2006/01/02 15:04:05",      // Caddy's wall
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05",
	"2006-01-02T15:04:05",
	"Mon, 02 Jan 2006 15:04:05 GMT",
}

// Times outside these years are not from a log.
const (
	firstYear = 1990
	lastYear  = 2200
)

// time returns a time in microseconds since the epoch.
func (p *clock) time(text string) (micros int64, err error) {
	if text == p.text {
		return p.micros, nil
	}
	if micros, err = p.read(text); err != nil {
		return 0, err
	}
	if year := time.UnixMicro(micros).UTC().Year(); year < firstYear || year > lastYear {
		return 0, fmt.Errorf("the time %.40q is in the year %d", text, year)
	}
	p.text, p.micros = text, micros
	return micros, nil
}

// read reads a number, or else a time in one of the layouts.
func (p *clock) read(text string) (micros int64, err error) {
	if '0' <= text[0] && text[0] <= '9' {
		if micros, err = p.number(text); err == nil {
			return micros, nil
		}
	}
	return p.parse(text)
}

// number reads a time since the epoch, in seconds, milliseconds, microseconds or nanoseconds.
func (p *clock) number(text string) (micros int64, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, err
	}
	digits := 6 // how many places the point moves
	for bound := int64(1e11); n >= bound && digits > -3; bound *= 1000 {
		digits -= 3
	}
	p.sees(6 - digits + len(fraction))
	return scaled(whole, fraction, digits)
}

// parse reads a time in one of the layouts.
func (p *clock) parse(text string) (micros int64, err error) {
	for i := range layouts {
		at := (p.layout + i) % len(layouts)
		t, err := time.ParseInLocation(layouts[at], text, p.zone)
		if err != nil {
			continue
		}
		p.layout = at
		p.sees(fractionDigits(text))
		return t.UnixMicro(), nil
	}
	return 0, fmt.Errorf("the time %.40q has a form that is not known", text)
}

// fractionDigits returns the number of digits behind the seconds.
func fractionDigits(text string) (n int) {
	point := strings.LastIndexAny(text, ".,")
	for i := point + 1; point >= 0 && i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		n++
	}
	return n
}

// sees notes how many digits a time had behind the seconds.
func (p *clock) sees(digits int) {
	unit := int64(1)
	for range 6 - min(digits, 6) {
		unit *= 10
	}
	p.unit = min(p.unit, unit)
}

// maxTook bounds how long a call can have taken, so that a wrong number moves no call out of its log.
const maxTook = int64(30 * 24 * time.Hour / time.Microsecond)

// took returns a duration in microseconds. Its point moves by that number of digits, unless it has a unit. A
// duration that cannot be read is not known.
func took(text string, digits int) int64 {
	micros := int64(0)
	if last := text[len(text)-1]; last == 's' || last == 'm' || last == 'h' {
		d, _ := time.ParseDuration(text)
		micros = d.Microseconds()
	} else {
		whole, fraction, _ := strings.Cut(text, ".")
		micros, _ = scaled(whole, fraction, digits)
	}
	return min(max(0, micros), maxTook)
}

// scaled returns the whole part of a number whose point is moved to the right by some digits.
func scaled(whole, fraction string, digits int) (int64, error) {
	if digits < 0 {
		return strconv.ParseInt("0"+whole[:max(0, len(whole)+digits)], 10, 64)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 {
		return 0, errors.New("is not a number of a time")
	}
	for i := range digits {
		if n > math.MaxInt64/10-1 {
			return 0, errors.New("is too large for a time")
		}
		n *= 10
		if i < len(fraction) {
			if d := fraction[i]; d < '0' || d > '9' {
				return 0, errors.New("is not a number of a time")
			}
			n += int64(fraction[i] - '0')
		}
	}
	return n, nil
}
