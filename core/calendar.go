package core

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
	"github.com/accesslimit/accesslimit/core/internal/limittext"
)

// Calendar is the days or the months of a time zone, as spans of a limit. See [PerCalendarDay] and
// [PerCalendarMonth]. The zero value is no calendar. It is a small comparable value.
type Calendar struct {
	unit limittext.Unit
	zone string
}

// String returns the span in words: "day of Europe/Berlin".
func (c Calendar) String() string {
	if c == (Calendar{}) {
		return "no calendar"
	}
	if c.zone == "" {
		return c.unit.String() + " of no zone"
	}
	return fmt.Sprintf("%v of %s", c.unit, c.zone)
}

// calendars holds one entry for each calendar in use, so that all its limits share the day or month
// that was computed last.
var calendars cowmap.Map[Calendar, *algorithm.Calendar]

// maxCalendars is more than the zone database has.
const maxCalendars = 2000

// maxZoneInKey is the longest zone name that a key contains unhashed. It keeps the key within its
// 200 bytes.
const maxZoneInKey = 21

func (c Calendar) compile() (*algorithm.Calendar, error) {
	if known, ok := calendars.Get(c); ok {
		return known, nil
	}
	c.zone = strings.Clone(c.zone) // a caller may have lent it for one call, and the table keeps it
	if c.zone == "" || c.zone == "Local" || path.Clean(c.zone) != c.zone {
		return nil, errors.New(`needs a zone by name, as "Europe/Berlin" or "UTC", which means the same on every machine`)
	}
	zone, err := time.LoadLocation(c.zone)
	if err != nil {
		return nil, fmt.Errorf(`is of a zone that this machine does not know (%w); if it has no zone database, import _ "time/tzdata"`, err)
	}
	name := c.zone
	if len(name) > maxZoneInKey {
		name = "#" + Digest(name)[:maxZoneInKey-1]
	}
	made, _ := calendars.Add(c, algorithm.NewCalendar(c.unit.String()[:1]+name, zone, c.unit == limittext.Months), maxCalendars)
	return made, nil
}
