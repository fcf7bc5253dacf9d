// Package waits writes how long to wait, in the words that callers and operators read.
package waits

import (
	"strconv"
	"time"
)

// Seconds returns a span in whole seconds, rounded up.
func Seconds(span time.Duration) int64 { return int64((span + time.Second - 1) / time.Second) }

// RetryAfter returns a wait in whole seconds, rounded up and at least one, because a zero would
// invite callers to hammer.
func RetryAfter(wait time.Duration) int64 { return max(1, Seconds(wait)) }

// Append appends a wait in one or two units: "12 s", "1 min 30 s", "19 h 13 min", "2 days 3 h". It
// rounds up, so that nobody retries too early.
func Append(text []byte, wait time.Duration) []byte {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	seconds := RetryAfter(wait)
	minutes, hours := roundedUp(seconds, minute), roundedUp(seconds, hour)
	switch {
	case seconds < minute:
		return append(strconv.AppendInt(text, seconds, 10), " s"...)
	case seconds < hour:
		return appendUnits(text, seconds, minute, " min", 1, " s")
	case minutes < day:
		return appendUnits(text, minutes, hour, " h", minute, " min")
	case hours < 2*day:
		return appendUnits(text, hours, day, " day", hour, " h")
	default:
		return appendUnits(text, hours, day, " days", hour, " h")
	}
}

func roundedUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// appendUnits appends a number of seconds in a large and a small unit, and leaves out the small one
// if it is 0.
func appendUnits(text []byte, seconds, large int64, largeName string, small int64, smallName string) []byte {
	text = append(strconv.AppendInt(text, seconds/large, 10), largeName...)
	if rest := seconds % large / small; rest > 0 {
		text = append(strconv.AppendInt(append(text, ' '), rest, 10), smallName...)
	}
	return text
}
