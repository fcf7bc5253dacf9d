package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Algorithm is how calls are counted. The zero value is SlidingWindow. The package documentation says which to choose.
type Algorithm uint8

const (
	// SlidingWindow never lets more than Max through in any span of Window. A used permit comes back at most Window/32
	// late, never early. (An aggregated sliding window: the window is counted in 32 sub-windows.)
	SlidingWindow Algorithm = iota
	// FixedWindow lets Max through from the first call until Window later, then starts afresh: up to twice Max may pass
	// within one Window around the boundary.
	FixedWindow
	// TokenBucket is a bucket of Burst permits that starts full and refills continuously at Max per Window.
	TokenBucket
)

var algorithmNames = [...]string{SlidingWindow: "SlidingWindow", FixedWindow: "FixedWindow", TokenBucket: "TokenBucket"}

// String is the algorithm's name, as it is spelled in Go.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

func (a Algorithm) kind() algorithm.Kind {
	switch a {
	case FixedWindow:
		return algorithm.FixedWindow
	case TokenBucket:
		return algorithm.TokenBucket
	default:
		return algorithm.SlidingWindow
	}
}

// Limit is the arithmetic of a limit: so many permits in a span. It is a small comparable value. The zero Limit is refused
// where it is used, as is one with a negative or too large number: there is no accidental "everything" or "nothing".
type Limit struct {
	// Max is how many permits a span has, 1 to 10^12.
	Max int
	// Window is the span: 1 ms to 366 days, in whole microseconds.
	Window time.Duration
	// Algorithm is how they are counted; SlidingWindow unless set.
	Algorithm Algorithm
	// Burst is the size of a TokenBucket, 1 to 10^12; Max unless set. The other algorithms have none.
	Burst int
}

// PerSecond is a sliding window of one second: at most n in any second.
func PerSecond(n int) Limit { return Limit{Max: n, Window: time.Second} }

// PerMinute is a sliding window of one minute.
func PerMinute(n int) Limit { return Limit{Max: n, Window: time.Minute} }

// PerHour is a sliding window of one hour.
func PerHour(n int) Limit { return Limit{Max: n, Window: time.Hour} }

// PerDay is a sliding window of 24 hours, wherever the day begins.
func PerDay(n int) Limit { return Limit{Max: n, Window: 24 * time.Hour} }

// Bucket is the same rate counted by a token bucket of so many permits: PerSecond(10).Bucket(20) refills ten a second and
// lets twenty through at once.
func (l Limit) Bucket(burst int) Limit {
	l.Algorithm, l.Burst = TokenBucket, burst
	return l
}

// String says the limit in words: "100 per 1m", "10 per 1s, burst 20".
func (l Limit) String() string {
	text := fmt.Sprintf("%d per %s", l.Max, spanText(l.Window))
	if l.Algorithm == TokenBucket {
		return fmt.Sprintf("%s, burst %d", text, l.atOnce())
	}
	return text
}

// spanText is a span without the zeros that time.Duration writes: 1m, not 1m0s.
func spanText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// atOnce is how many permits can pass at one moment.
func (l Limit) atOnce() int {
	if l.Algorithm == TokenBucket && l.Burst != 0 {
		return l.Burst
	}
	return l.Max
}

// fullAgainAfter is how long a limit that is used up takes until all of it is there again, not counting sub-windows.
func (l Limit) fullAgainAfter() time.Duration {
	if l.Algorithm != TokenBucket {
		return l.Window
	}
	return time.Duration(float64(l.Window) / float64(l.Max) * float64(l.atOnce()))
}

// compile checks the limit and puts it into the integers that the engines calculate with.
func (l Limit) compile() (algorithm.Limit, error) {
	switch {
	case l.Max < 1 || int64(l.Max) > algorithm.MaxPermits:
		return algorithm.Limit{}, &RuleError{Field: "Max", Value: l.Max, Why: "must be 1 to 10^12"}
	case l.Window < time.Millisecond || l.Window > algorithm.MaxWindow*time.Microsecond:
		return algorithm.Limit{}, &RuleError{Field: "Window", Value: l.Window, Why: "must be 1 ms to 366 days"}
	case l.Window%time.Microsecond != 0:
		return algorithm.Limit{}, &RuleError{Field: "Window", Value: l.Window, Why: "must be whole microseconds"}
	case int(l.Algorithm) >= len(algorithmNames):
		return algorithm.Limit{}, &RuleError{Field: "Algorithm", Value: l.Algorithm, Why: "is none of this package"}
	case l.Burst != 0 && l.Algorithm != TokenBucket:
		return algorithm.Limit{}, &RuleError{Field: "Burst", Value: l.Burst, Why: "means something for TokenBucket only"}
	case l.Burst < 0 || int64(l.Burst) > algorithm.MaxPermits:
		return algorithm.Limit{}, &RuleError{Field: "Burst", Value: l.Burst, Why: "must be 1 to 10^12, or unset"}
	}
	window := l.Window.Microseconds()
	if l.Algorithm != TokenBucket {
		return algorithm.Windowed(l.Algorithm.kind(), int64(l.Max), window), nil
	}
	compiled, err := algorithm.Bucketed(int64(l.Max), window, int64(l.atOnce()))
	if err != nil {
		field, value := "Burst", l.Burst
		if l.Burst == 0 {
			field, value = "Max", l.Max
		}
		return algorithm.Limit{}, &RuleError{Field: field, Value: value, Why: err.Error()}
	}
	return compiled, nil
}
