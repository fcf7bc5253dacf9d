package redisrate

import (
	"fmt"
	"time"
)

// Limit is a bucket of Burst events that starts full and is refilled at Rate per Period.
type Limit struct {
	Rate   int
	Burst  int
	Period time.Duration
}

// PerSecond returns a limit of rate events per second, all of which may happen at once.
func PerSecond(rate int) Limit { return Limit{Rate: rate, Burst: rate, Period: time.Second} }

// PerMinute returns a limit of rate events per minute, all of which may happen at once.
func PerMinute(rate int) Limit { return Limit{Rate: rate, Burst: rate, Period: time.Minute} }

// PerHour returns a limit of rate events per hour, all of which may happen at once.
func PerHour(rate int) Limit { return Limit{Rate: rate, Burst: rate, Period: time.Hour} }

// IsZero reports whether l is the zero Limit.
func (l Limit) IsZero() bool { return l == Limit{} }

// String returns the limit in words: 10 req/s (burst 10).
func (l Limit) String() string {
	period, named := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[l.Period]
	if !named {
		period = l.Period.String()
	}
	return fmt.Sprintf("%d req/%s (burst %d)", l.Rate, period, l.Burst)
}
