package operate

import (
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/engine"
)

// limitOf returns a limit as the owner of a rule would write it.
func limitOf(l *engine.Limit) core.Limit {
	compiled := l.Compiled
	limit := core.Limit{
		Max: permits(l.Max), Window: micros(compiled.Window), Algorithm: core.Algorithm(compiled.Kind),
	}
	if compiled.Properties().Burst {
		limit.Burst = permits(compiled.Max)
	}
	calendar := compiled.Calendar()
	if calendar == nil {
		return limit
	}
	zone, months := calendar.Zone()
	if months {
		return core.PerCalendarMonth(limit.Max, zone)
	}
	return core.PerCalendarDay(limit.Max, zone)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
