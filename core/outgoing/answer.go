package outgoing

import "time"

// Answer is what a server said about its limits.
type Answer struct {
	// Refused reports whether the server refused the call because of a limit.
	Refused bool
	// Wait is how long the server wants no calls, or 0 if it did not say. Refusals without it lead to pauses
	// of a second, two seconds, and so on up to MaxPause, until a call is answered.
	Wait time.Duration
}
