package core

import "github.com/accesslimit/accesslimit/core/internal/waits"

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
	return string(append(waits.Append(text, d.RetryAfter), '.'))
}
