package core

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Algorithm is a way to count calls. The zero value is SlidingWindow. Each has its words in the text
// form of a limit.
type Algorithm uint8

// The algorithms, and when to use which.
const (
	// SlidingWindow is right for most limits. It never admits more than Max in any span of Window,
	// and its memory does not grow with Max. A used permit comes back at most Window/32 late, and
	// never early. (It is an aggregated sliding window: it counts in 32 sub-windows.) Text: 100/s.
	SlidingWindow Algorithm = iota
	// SlidingLog promises the same exactly: a permit comes back to the microsecond, Window after it
	// was used. It stores every admitted call, with a note if there is one ([Rule].Note,
	// [Log.Allow]), and [Log.Records] lists them. So Max is at most 10,000. Use it for password
	// resets, orders, and other calls that somebody may have to explain later. Text: 5/15m log.
	SlidingLog
	// FixedWindow is the easiest to explain. The window begins with the first call, and when it is
	// over the count starts afresh. Around that moment, up to twice Max may pass within one Window.
	// Text: 1000/24h fixed.
	FixedWindow
	// CalendarWindow is a FixedWindow whose windows are the same for all subjects: each Window
	// since the epoch (1970-01-01 UTC), or each day or month of a zone ([PerCalendarDay],
	// [PerCalendarMonth]). Use it for quotas that are sold by the day or month. Text: 60/m aligned,
	// 1000/day@UTC, 30000/month@Europe/Berlin.
	CalendarWindow
	// TokenBucket admits a burst at once and then a steady rate. It is a bucket of Burst permits
	// that starts full and refills continuously at Max per Window. Use it for clients that call in
	// bursts. It is the only algorithm that callers can wait for, with a [Pacer]: turns come in
	// order across all processes. A large cost is granted at once, and the next caller waits for
	// it. Text: 10/s burst 20.
	TokenBucket
	// Concurrency limits how many calls are in flight, not how often they come: never more than Max
	// at once, while their holders can reach the store. Use it for exports, streams, and logins to
	// a legacy system. A call takes one slot, whatever its cost, and gives it back when it ends:
	// through the middleware, or the release function of [Slots.Hold]. Holders renew their slot
	// every Window/3, and a slot that is not renewed for Window is free. Max is at most 10,000,
	// Window at least one second.
	//
	// RetryAfter is an upper bound, because nobody knows when a call will end: it is the time until
	// the oldest slot would be free if its holder had died. Text: 3 at once, or 3 at once lost after
	// 10s.
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
func (a Algorithm) known() bool { return algorithm.Kind(a).Limits() }

// properties returns what is always true of the algorithm. internal/algorithm registers the
// properties in the order of the constants. An unknown algorithm has none.
func (a Algorithm) properties() *algorithm.Properties { return algorithm.Kind(a).OfLimit() }
