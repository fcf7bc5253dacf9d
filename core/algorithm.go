package core

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Algorithm is a way to count calls. The zero value is SlidingWindow. The package documentation
// says which one to choose.
type Algorithm uint8

// The properties of each are registered in internal/algorithm, in this order.
const (
	// SlidingWindow never lets more than Max through in any span of Window. A used permit comes
	// back at most Window/32 late, and never early. (It is an aggregated sliding window: the window
	// is counted in 32 sub-windows.)
	SlidingWindow Algorithm = iota
	// SlidingLog promises the same exactly: a permit comes back to the microsecond, Window after it
	// was used. It keeps every admitted call, with a note if there is one ([Rule].Note,
	// [Log.Allow]). So Max is at most 10,000.
	SlidingLog
	// FixedWindow lets Max through from the first call until Window later, and then starts afresh.
	// Around that boundary, up to twice Max may pass within one Window.
	FixedWindow
	// CalendarWindow is the same with windows aligned to the clock: each Window since the epoch
	// (1970-01-01 UTC), or each day or month of a zone ([PerCalendarDay],
	// [PerCalendarMonth]).
	CalendarWindow
	// TokenBucket is a bucket of Burst permits that starts full and refills continuously at Max per
	// Window. Only a TokenBucket can be waited for, with a [Pacer].
	TokenBucket
	// Concurrency never lets more than Max calls be in flight at once, while their holders can
	// reach the store. A call takes one slot, whatever its cost, and gives it back when it ends:
	// through the middleware, or the release function of [Slots.Hold]. Holders renew their slot
	// every Window/3, and a slot that is not renewed for Window is free. Max is at most 10,000,
	// Window at least one second.
	//
	// RetryAfter is an upper bound: the time until the oldest slot would be free if its holder had
	// died. Another slot may be free much sooner.
	Concurrency
)

// String returns the algorithm's name, as it is spelled in Go.
func (a Algorithm) String() string {
	if a.known() {
		return a.properties().Name
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// known reports whether a limit can have this algorithm.
func (a Algorithm) known() bool {
	return algorithm.Kind(a).Known() && !algorithm.Kind(a).Properties().Watches
}

// properties returns what is always true of the algorithm. One that is not known has none.
func (a Algorithm) properties() *algorithm.Properties {
	if !a.known() {
		return &noProperties
	}
	return algorithm.Kind(a).Properties()
}

var noProperties algorithm.Properties

// algorithmOf returns the algorithm with a word of its own in the text form of a limit.
func algorithmOf(word string) (a Algorithm, ok bool) {
	for _, kind := range algorithm.Kinds() {
		if kind.Properties().Text == word {
			return Algorithm(kind), word != ""
		}
	}
	return 0, false
}
