package core

import (
	"strconv"
	"time"
)

// refusalMessage returns the message for a caller over a limit, unless the rule has a Message of
// its own.
func refusalMessage(d *Decision, limit string) string {
	text := make([]byte, 0, 128) // on the stack: a refusal should cost little
	switch {
	case d.Reason == Blocked && d.RetryAfter == 0:
		return "Calls are refused."
	case d.Reason == Banned || d.Reason == Blocked:
		text = append(text, "Calls are refused for another "...)
	case d.Limit.Algorithm.properties().Slots:
		text = append(append(append(text, "Limit of "...), limit...), " reached. Try again when another call has ended, or in "...)
	case d.Remaining > 0:
		text = append(append(append(text, "Rate limit of "...), limit...), " leaves too little for this call. Try again in "...)
	default:
		text = append(append(append(text, "Rate limit of "...), limit...), " exceeded. Try again in "...)
	}
	return string(append(appendWait(text, d.RetryAfter), '.'))
}

// appendWait appends a wait in one or two units: "12 s", "1 min 30 s", "19 h 13 min", "2 days 3 h".
// It rounds up, so that nobody comes too early.
func appendWait(text []byte, wait time.Duration) []byte {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	seconds := retrySeconds(wait)
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
