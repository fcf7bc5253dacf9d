package outgoing

import (
	"math"
	"time"
)

// congestion finds out how much a server allows that does not announce it, from the pauses that it asks
// for. Paces are fractions of the rule's rate.
//
// After a pause calls are slower than before, and then for a while nearly as fast as before. If that
// goes well they become faster still, because the server may allow more by now. Another pause soon
// after the last one means that the pace is far too high. All processes see the same pauses, so they
// find about the same pace.
type congestion struct {
	high, low float64   // the pace that led to the last pause, and that after it; 0: there was none
	ends      time.Time // of the last pause
}

const (
	// afterPause and whileHeld are parts of the pace that led to a pause: that at first, and that from
	// rise to hold seconds after the pause.
	afterPause, whileHeld = 0.9, 0.97
	rise, hold            = 20, 60
	// afterSoon is the part of the pace that is left if calls pause again within so many seconds.
	afterSoon, soon = 0.8, 2
	// growth is the factor by which calls become faster in the first second after that. Ten seconds
	// later, calls become faster by three times as much in a second.
	growth = 1.05
	// slowest is the least pace: a server that is down for a while seems to allow nothing. A pace that
	// rises from low is at most eightfold in the end.
	slowest, eightfold = 1.0 / 64, 8
	// stepsPerDoubling is how finely paces are distinguished, because a bucket is counted exactly for
	// few rates at a time.
	stepsPerDoubling = 32
)

// paused notes a pause that begins now.
func (c *congestion) paused(now time.Time, lasts time.Duration) {
	ends := now.Add(lasts)
	switch pace := c.pace(now); {
	case now.Before(c.ends): // it is in force already
		if ends.Before(c.ends) {
			ends = c.ends
		}
	case c.high > 0 && c.since(now) < soon:
		c.low = max(pace*afterSoon, slowest)
		c.high = min(c.high, c.low*eightfold)
	default:
		c.high, c.low = pace, max(pace*afterPause, slowest)
	}
	c.ends = ends
}

// since returns how many seconds ago the last pause ended.
func (c *congestion) since(now time.Time) float64 { return max(0, now.Sub(c.ends).Seconds()) }

// pace returns the fraction of the rule's rate at which calls are sent.
func (c *congestion) pace(now time.Time) float64 {
	if c.high == 0 {
		return 1
	}
	held := max(c.high*whileHeld, c.low)
	switch since := c.since(now); {
	case since < rise:
		return c.low + (held-c.low)*since/rise
	case since < hold:
		return held
	default:
		free := since - hold
		return min(1, held*math.Pow(growth, free+free*free/10))
	}
}

// step returns the number of the step that the pace is on: 0 for the rule's rate, below it -1, -2, and
// so on.
func (c *congestion) step(now time.Time) int {
	return int(math.Floor(math.Log2(c.pace(now)) * stepsPerDoubling))
}

// fraction returns the pace of a step.
func fraction(step int) float64 { return math.Exp2(float64(step) / stepsPerDoubling) }
