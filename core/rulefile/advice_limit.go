package rulefile

import (
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// isMootBeside reports whether a limit refuses no call that fits a wider one beside it, because the
// wider one never admits more in any longer span. Only sliding windows and logs never do, around the
// end of a window too.
func isMootBeside(limit, wider core.Limit) bool {
	if !isExact(wider) || wider.Max > mostAtOnce(limit) || limit == core.Unlimited {
		return false
	}
	switch limit.Algorithm {
	case core.SlidingWindow, core.SlidingLog, core.FixedWindow, core.CalendarWindow:
		return remembered(limit) <= wider.Window
	case core.TokenBucket: // refills as fast as the wider one admits
		return float64(limit.Max)/limit.Window.Seconds() >= float64(wider.Max)/wider.Window.Seconds()
	default:
		return false
	}
}

// isExact reports whether no more than Max pass in any Window.
func isExact(l core.Limit) bool {
	return l != core.Unlimited && l.Calendar == core.Calendar{} && (l.Algorithm == core.SlidingWindow || l.Algorithm == core.SlidingLog)
}

// mostAtOnce returns how many permits a limit that nobody has used admits at once.
func mostAtOnce(l core.Limit) int {
	if l.Algorithm == core.TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Max
}

// remembered returns the longest time for which a permit counts. In a sliding window that is up to
// 1/32 more than the window, and a calendar's unit is at most a month and an hour.
func remembered(l core.Limit) time.Duration {
	switch {
	case l.Calendar != core.Calendar{}:
		return 31*24*time.Hour + time.Hour
	case l.Algorithm == core.SlidingWindow:
		return l.Window + l.Window/32
	default:
		return l.Window
	}
}
