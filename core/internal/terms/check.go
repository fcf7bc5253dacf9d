package terms

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Mistake says what is wrong with terms: the field of core.Limit, or "Limit" for the whole limit, a
// stable code, and the reason.
type Mistake struct{ Field, Code, Why string }

// check returns what is wrong with the terms, except what only an algorithm can tell, or nil.
func (t Terms) check() *Mistake {
	of := t.Kind.OfLimit()
	most, shortest := cmp.Or(of.MaxPermits, algorithm.MaxEntries), time.Duration(of.MinWindow)*time.Microsecond
	switch {
	case t == Unlimited:
		return &Mistake{"Limit", "unlimited", "cannot be counted: Unlimited is for Plans, LimitFor and a Counter's own limit"}
	case t.Kind.Limits() && most < algorithm.MaxPermits && (t.Max < 1 || int64(t.Max) > most):
		return &Mistake{"Max", "max_entries", fmt.Sprintf("must be 1 to 10,000 for %s, which keeps an entry for each call", of.Name)}
	case t.Max < 1 || int64(t.Max) > algorithm.MaxPermits:
		return &Mistake{"Max", "max_range", "must be 1 to 10^12"}
	case !t.Kind.Limits():
		return &Mistake{"Algorithm", "algorithm", "is not an algorithm of this package"}
	case t.Unit != 0 && t.Window != 0:
		return &Mistake{"Calendar", "calendar_and_window", "takes the place of a Window: set one of the two"}
	case t.Unit != 0 && t.Kind != 0 && !of.Calendar:
		return &Mistake{"Calendar", "calendar_algorithm", "goes with " + Kinds(countsCalendars) + " only"}
	case t.Unit == 0 && (t.Window < time.Millisecond || t.Window > algorithm.MaxWindow*time.Microsecond):
		return &Mistake{"Window", "window_range", "must be 1 ms to 366 days"}
	case t.Window%time.Microsecond != 0:
		return &Mistake{"Window", "window_fraction", "must be whole microseconds"}
	case t.Window < shortest:
		return &Mistake{"Window", "window_short", fmt.Sprintf("must be at least %g s for %s: holders renew their slots every third of it", shortest.Seconds(), of.Name)}
	case t.Burst != 0 && !of.Burst:
		return &Mistake{"Burst", "burst_without_bucket", "applies only to " + Kinds(hasBurst)}
	case t.Burst < 0 || int64(t.Burst) > algorithm.MaxPermits:
		return &Mistake{"Burst", "burst_range", "must be 1 to 10^12, or unset"}
	}
	return nil
}

func countsCalendars(p *algorithm.Properties) bool { return p.Calendar }

func hasBurst(p *algorithm.Properties) bool { return p.Burst }

// Filled returns the terms with their unset fields filled in, so that terms that mean the same are
// equal.
func (t Terms) Filled() Terms {
	if t.Unit != 0 && t.Kind == 0 {
		t.Kind = ofCalendars
	}
	if t.Kind.OfLimit().Burst {
		t.Burst = t.AtOnce()
	}
	return t
}

// Compile checks the terms and converts them into the integers that the stores calculate with.
func (t Terms) Compile() (algorithm.Limit, *Mistake) {
	if wrong := t.check(); wrong != nil {
		return algorithm.Limit{}, wrong
	}
	t = t.Filled()
	own := algorithm.Terms{Max: int64(t.Max), Window: t.Window.Microseconds(), Burst: int64(t.Burst)}
	if t.Unit != 0 {
		calendar, err := calendarOf(t.Unit, t.Zone)
		if err != nil {
			return algorithm.Limit{}, &Mistake{"Calendar", "calendar_zone", err.Error()}
		}
		own.Calendar = calendar
	}
	compiled, err := algorithm.Make(t.Kind, own)
	switch {
	case err != nil && t.Burst != t.Max && t.Burst != 0:
		return compiled, &Mistake{"Burst", "too_fine", err.Error()}
	case err != nil:
		return compiled, &Mistake{"Max", "too_fine", err.Error()}
	}
	return compiled, nil
}

// AtOnce returns how many permits can pass at one moment.
func (t Terms) AtOnce() int {
	if t.Burst != 0 && t.Kind.OfLimit().Burst {
		return t.Burst
	}
	return t.Max
}

// Span returns the window, or the nominal length of a calendar's days or months.
func (t Terms) Span() time.Duration {
	if t.Unit == 0 {
		return t.Window
	}
	return t.Unit.nominal()
}

// FullAgainAfter returns the longest time until all permits of a used-up limit are back,
// disregarding sub-windows.
func (t Terms) FullAgainAfter() time.Duration {
	if !t.Kind.OfLimit().Burst {
		return t.Span()
	}
	return time.Duration(float64(t.Window) / float64(t.Max) * float64(t.AtOnce()))
}

// Counter returns the terms on which the counter of a limit depends.
func (t Terms) Counter() Terms {
	t = t.Filled()
	return Terms{Window: t.Window, Unit: t.Unit, Zone: t.Zone, Kind: t.Kind}
}

// Clone returns the terms with their own copy of the zone's name, which a framework may have lent for
// one call only.
func (t Terms) Clone() Terms {
	t.Zone = strings.Clone(t.Zone)
	return t
}
