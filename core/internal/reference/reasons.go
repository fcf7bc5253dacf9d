package reference

import "slices"

// reasons are the reasons for refusals. References hold their indexes, so an index never changes
// its meaning.
var reasons = [...]string{
	0: "", 1: "limit_exceeded", 2: "banned", 3: "not_logged_in", 4: "identify_failed", 5: "store_fail_closed", 6: "context_ended",
	7: "cost_too_high", 8: "blocked",
}

// NumberOf returns the number that stands for a reason in references, or 0 if there is none.
func NumberOf(reason string) byte { return byte(max(0, slices.Index(reasons[:], reason))) }

// ReasonOf returns the reason that a number stands for. ok is false if only a later version of the
// library knows it.
func ReasonOf(number byte) (reason string, ok bool) {
	if int(number) >= len(reasons) {
		return "", false
	}
	return reasons[number], true
}
