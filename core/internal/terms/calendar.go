package terms

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/cowmap"
)

// zoned is the days or the months of a zone.
type zoned struct {
	unit Unit
	zone string
}

// calendars holds one entry for each calendar in use, so that all limits with a calendar share the
// day or month that was computed last.
var calendars cowmap.Map[zoned, *algorithm.Calendar]

// maxCalendars is more than the zone database has.
const maxCalendars = 2000

// maxZoneInKey is the longest zone name that a key contains unhashed. It keeps the key within its
// 200 bytes.
const maxZoneInKey = 21

func calendarOf(unit Unit, zone string) (*algorithm.Calendar, error) {
	if known, ok := calendars.Get(zoned{unit, zone}); ok {
		return known, nil
	}
	zone = strings.Clone(zone) // a caller may have lent it for one call, and the table keeps it
	if zone == "" || zone == "Local" || path.Clean(zone) != zone {
		return nil, errors.New(`needs a zone by name, as "Europe/Berlin" or "UTC", which means the same on every machine`)
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf(`is of a zone that this machine does not know (%w); if it has no zone database, import _ "time/tzdata"`, err)
	}
	name := zone
	if len(name) > maxZoneInKey {
		sum := sha256.Sum256([]byte(name))
		name = "#" + hex.EncodeToString(sum[:])[:maxZoneInKey-1]
	}
	made, _ := calendars.Add(zoned{unit, zone}, algorithm.NewCalendar(unit.String()[:1]+name, location, unit == Months), maxCalendars)
	return made, nil
}
