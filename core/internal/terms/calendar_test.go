package terms

import (
	"testing"
	"unsafe"
)

// A caller may lend the name of a zone for one call, as fasthttp does.
func TestCalendarsKeepTheirOwnZones(t *testing.T) {
	calendars.Clear()
	lent := []byte("Europe/Berlin")
	if _, wrong := (Terms{Max: 1, Unit: Days, Zone: unsafe.String(&lent[0], len(lent))}).Compile(); wrong != nil {
		t.Fatal(wrong)
	}
	copy(lent, "xxxxxx")
	for key := range calendars.All() {
		if key.zone != "Europe/Berlin" {
			t.Errorf("the table has the zone %q", key.zone)
		}
	}
}
