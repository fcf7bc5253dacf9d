package rulefile

import (
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// isMootBeside reports whether a limit refuses no call that fits a wider one beside it, because the
// wider one never admits more in any longer span. Only exact limits never do, around the end of a
// window too.
func isMootBeside(limit, wider core.Limit) bool {
	if limit == core.Unlimited || wider == core.Unlimited || !properties(wider).Exact || wider.Max > mostAtOnce(limit) {
		return false
	}
	switch p := properties(limit); {
	case p.Slots:
		return false
	case p.Burst: // refills as fast as the wider one admits
		return float64(limit.Max)/limit.Window.Seconds() >= float64(wider.Max)/wider.Window.Seconds()
	default:
		return remembered(limit) <= wider.Window
	}
}

func properties(l core.Limit) *algorithm.Properties { return algorithm.Kind(l.Algorithm).OfLimit() }

// mostAtOnce returns how many permits a limit that nobody has used admits at once.
func mostAtOnce(l core.Limit) int {
	if properties(l).Burst && l.Burst > 0 {
		return l.Burst
	}
	return l.Max
}

// remembered returns the longest time for which a permit counts. A calendar's unit is at most a month
// and an hour.
func remembered(l core.Limit) time.Duration {
	switch {
	case l.Calendar != core.Calendar{}:
		return 31*24*time.Hour + time.Hour
	case properties(l).Late:
		return l.Window + l.Window/32
	default:
		return l.Window
	}
}
