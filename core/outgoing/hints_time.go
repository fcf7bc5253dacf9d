package outgoing

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Numbers from these on are times since 1970, in seconds and in milliseconds. Smaller ones are waits
// in seconds: at most 31 years.
const (
	sinceEpoch       = 1e9
	milliSinceEpoch  = 1e11
	longestInSeconds = float64(longest / time.Second)
)

// waitIn reads a wait in any of the forms that servers use: see Quota. A text that is none of them is
// no wait, and neither is a time that has passed.
func waitIn(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if n, ok := number(text); ok {
		switch {
		case n >= milliSinceEpoch:
			return until(time.UnixMilli(int64(min(n, 1e15))), now)
		case n >= sinceEpoch:
			return until(time.UnixMilli(int64(n*1000)), now)
		}
		return inSeconds(n)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return min(max(0, d), longest)
	}
	for _, parse := range [...]func(string) (time.Time, error){http.ParseTime, parseISO} {
		if at, err := parse(text); err == nil {
			return until(at, now)
		}
	}
	return 0
}

func parseISO(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04Z07:00", text) // Atlassian leaves the seconds out
	}
	return at, err
}

func until(at, now time.Time) time.Duration { return min(max(0, at.Sub(now)), longest) }

// milliseconds reads a number of milliseconds, or returns 0.
func milliseconds(text string) time.Duration {
	n, _ := number(strings.TrimSpace(text))
	return inSeconds(n / 1000)
}

func inSeconds(n float64) time.Duration {
	return time.Duration(min(max(0, n), longestInSeconds) * float64(time.Second))
}

// longestNumber is the length of the start of a number that is read: enough for any wait, and little
// work.
const longestNumber = 30

// number reads a decimal number without an exponent.
func number(text string) (n float64, ok bool) {
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text[:min(len(text), longestNumber)], 64)
	return n, err == nil
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
